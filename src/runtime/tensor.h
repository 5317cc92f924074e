#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dims.h"
#include "core/dtype.h"
#include "core/no_memory.h"
#include "core/status.h"
#include "runtime/buffer.h"
#include "table/row_batch.h"

namespace millrace {

/// Values of one type in row-major order, with at most one level of LoD: offsets that cut axis 0 into sequences.
///
/// Owns a 64-byte aligned buffer on one device that grows and never shrinks, or views memory there that somebody else
/// keeps alive (a batch's column, another tensor). Not copyable. One thread writes; Hogwild's shared parameters are the
/// exception, written through kernels/racy.h alone.
class Tensor {
 public:
  /// On the CPU.
  Tensor() : Tensor(Cpu()) {}
  explicit Tensor(const Device& device) : Tensor(device.memory()) {}
  explicit Tensor(Allocator& memory) : buffer_(memory) {}
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;

  /// Where the values are; it never changes.
  const Device& device() const { return buffer_.allocator().device(); }
  /// True when the host reads them where they are; runtime/transfer.h is for the others.
  bool is_on_host() const { return buffer_.allocator().is_on_host(); }

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t numel() const { return dims_.numel(); }
  bool empty() const { return data_ == nullptr; }

  /// The values, which the host reads, taken as what dtype() says; taking them as another type throws
  /// std::invalid_argument, as does taking those in a device's memory.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(Raw(DTypeOf<T>::value));
  }
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(const_cast<void*>(Raw(DTypeOf<T>::value)));
  }
  /// Their address on the device.
  const void* raw_data() const { return data_; }

  /// Makes room for `dims` values and returns them, not initialised. Allocates only when the buffer must grow.
  /// Drops the LoD. Throws NoMemory, and std::invalid_argument for those that the host cannot write.
  template <class T>
  T* Resize(const Dims& dims) {
    CheckOnHost();
    return static_cast<T*>(ResizeRaw(DTypeOf<T>::value, dims));
  }
  /// The same on any device: their address there.
  void* ResizeRaw(DType type, const Dims& dims);

  /// Shows memory of the tensor's device that the caller keeps alive until the next View or Resize.
  void View(DType type, const Dims& dims, const void* data);
  /// Shows the values and LoD of another tensor of the device under other dims of the same size; throws
  /// std::invalid_argument for one of another device. They stay readable when that one is resized, for a program may
  /// write a variable again while another still shows it.
  void ViewOf(const Tensor& other, const Dims& dims);

  /// Offsets into axis 0, sequences + 1 of them; empty without LoD. Viewed, never owned.
  std::span<const uint32_t> lod() const { return lod_; }
  void set_lod(std::span<const uint32_t> lod) { lod_ = lod; }
  bool has_lod() const { return !lod_.empty(); }

 private:
  const void* Raw(DType type) const;
  void CheckOnHost() const {
    if (!is_on_host()) ThrowNotOn(Cpu());
  }
  [[noreturn]] void ThrowNotOn(const Device& other) const;

  DType dtype_ = DType::kFloat32;
  Dims dims_;
  const void* data_ = nullptr;
  Buffer buffer_;
  std::shared_ptr<void> shown_;  ///< another tensor's buffer, as long as this one shows it
  std::span<const uint32_t> lod_;
};

/// Of its values.
inline size_t BytesOf(const Tensor& tensor) { return static_cast<size_t>(tensor.numel()) * SizeOf(tensor.dtype()); }

/// A sparse gradient: values of some rows of a [height, width] parameter, or of a table's rows by key.
///
/// `rows` are row numbers or keys, one for each row of `values`; `merged` says that each occurs once. Buffers keep
/// their capacity. One thread.
struct SelectedRows {
  SelectedRows() = default;
  explicit SelectedRows(const Device& device) : values(device) {}

  /// Forgets the rows; those to come are of `table`, or null.
  void StartRows(const SparseTable* table);
  /// Starts with everything of `from` but its values.
  void TakeRows(const SelectedRows& from);
  /// Adds the rows of `from`, without its values. kInvalidConfig when they are of another table.
  Status AppendRows(const SelectedRows& from);
  /// True when `table_rows` has each of `rows`.
  bool has_table_rows() const { return table_rows.table() != nullptr && table_rows.size() == rows.size(); }

  int64_t height = 0;
  std::vector<uint64_t> rows;
  Tensor values;  ///< [rows.size(), width] float; the rest lies in the host's memory
  bool merged = false;
  /// A table's rows, as far as whoever made the gradient knew: the table alone, or a handle to each of `rows`, so that
  /// the update looks nothing up again. Who changes `rows` changes it as well.
  RowBatch table_rows;
};

}  // namespace millrace
