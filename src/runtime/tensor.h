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
/// Owns a 64-byte aligned buffer on one device that grows and never shrinks, or views memory there that its owner keeps
/// alive (a batch's column, another tensor). Not copyable. One thread writes, except for Hogwild's shared parameters,
/// which are written only through kernels/racy.h.
class Tensor {
 public:
  /// On the CPU.
  Tensor() : Tensor(Cpu()) {}
  explicit Tensor(const Device& device) : Tensor(device.memory()) {}
  explicit Tensor(Allocator& memory) : buffer_(memory) {}
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;

  /// The device of the values; constant.
  const Device& device() const { return buffer_.allocator().device(); }
  /// Whether the host can read the values directly; otherwise use runtime/transfer.h.
  bool is_on_host() const { return buffer_.allocator().is_on_host(); }

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t numel() const { return dims_.numel(); }
  bool empty() const { return data_ == nullptr; }

  /// The values, which must be on the host and have type dtype(); throws std::invalid_argument otherwise.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(Raw(DTypeOf<T>::value));
  }
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(const_cast<void*>(Raw(DTypeOf<T>::value)));
  }
  /// The device address of the values.
  const void* raw_data() const { return data_; }

  /// Allocates `dims` values, uninitialized, and returns their address. Allocates only if the buffer must grow. Drops
  /// the LoD. Throws NoMemory, and std::invalid_argument if the host cannot write the memory.
  template <class T>
  T* Resize(const Dims& dims) {
    CheckOnHost();
    return static_cast<T*>(ResizeRaw(DTypeOf<T>::value, dims));
  }
  /// The same on any device; returns the device address.
  void* ResizeRaw(DType type, const Dims& dims);

  /// Views memory of the tensor's device, which the caller keeps alive until the next View or Resize.
  void View(DType type, const Dims& dims, const void* data);
  /// Views the values and LoD of another tensor of the device with other dims of the same size; throws
  /// std::invalid_argument for another device. The values stay readable if that tensor is resized, because a program
  /// can rewrite a variable while another still views it.
  void ViewOf(const Tensor& other, const Dims& dims);

  /// Sequences + 1 offsets into axis 0; empty without LoD. Viewed, never owned.
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
  std::shared_ptr<void> shown_;  ///< keeps another tensor's buffer alive while viewed
  std::span<const uint32_t> lod_;
};

/// Bytes of the values.
inline size_t BytesOf(const Tensor& tensor) { return static_cast<size_t>(tensor.numel()) * SizeOf(tensor.dtype()); }

/// A sparse gradient: values for some rows of a [height, width] parameter, or of a table's rows by key.
///
/// `rows` are row numbers or keys, one per row of `values`; `merged` means that they are distinct. Buffers keep their
/// capacity. One thread.
struct SelectedRows {
  SelectedRows() = default;
  explicit SelectedRows(const Device& device) : values(device) {}

  /// Removes the rows; the next ones belong to `table`, or to none if null.
  void StartRows(const SparseTable* table);
  /// Copies everything of `from` except the values.
  void TakeRows(const SelectedRows& from);
  /// Appends the rows of `from` without values. Fails with kInvalidConfig if they belong to another table.
  Status AppendRows(const SelectedRows& from);
  /// Whether `table_rows` has each of `rows`.
  bool has_table_rows() const { return table_rows.table() != nullptr && table_rows.size() == rows.size(); }

  int64_t height = 0;
  std::vector<uint64_t> rows;
  Tensor values;  ///< [rows.size(), width] float; the other members are in host memory
  bool merged = false;
  /// A table's rows: only the table, or also a handle for each of `rows`, so the update needs no lookup. Code that
  /// changes `rows` must also change it.
  RowBatch table_rows;
};

}  // namespace millrace
