#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dims.h"
#include "core/dtype.h"
#include "core/no_memory.h"

namespace millrace {

/// Values of one type in row-major order, with at most one level of LoD: offsets that cut axis 0 into sequences.
///
/// Owns a 64-byte aligned buffer that grows and never shrinks, or views memory that somebody else keeps alive (a
/// batch's column, another tensor). Not copyable. One thread writes; Hogwild's shared parameters are the exception,
/// written through kernels/racy.h alone.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t numel() const { return dims_.numel(); }
  bool empty() const { return data_ == nullptr; }

  /// The values, taken as what dtype() says; taking them as another type throws std::invalid_argument.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(Raw(DTypeOf<T>::value));
  }
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(const_cast<void*>(Raw(DTypeOf<T>::value)));
  }
  const void* raw_data() const { return data_; }

  /// Makes room for `dims` values and returns them, not initialised. Allocates only when the buffer must grow.
  /// Drops the LoD. Throws NoMemory.
  template <class T>
  T* Resize(const Dims& dims) {
    return static_cast<T*>(ResizeRaw(DTypeOf<T>::value, dims));
  }
  void* ResizeRaw(DType type, const Dims& dims);

  /// Shows memory that the caller keeps alive until the next View or Resize.
  void View(DType type, const Dims& dims, const void* data);
  /// Shows another tensor's values and LoD under other dims of the same size.
  void ViewOf(const Tensor& other, const Dims& dims);

  /// Offsets into axis 0, sequences + 1 of them; empty without LoD. Viewed, never owned.
  std::span<const uint32_t> lod() const { return lod_; }
  void set_lod(std::span<const uint32_t> lod) { lod_ = lod; }
  bool has_lod() const { return !lod_.empty(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  const void* Raw(DType type) const;

  DType dtype_ = DType::kFloat32;
  Dims dims_;
  const void* data_ = nullptr;
  size_t capacity_ = 0;
  std::unique_ptr<void, Free> buffer_;
  std::span<const uint32_t> lod_;
};

/// A sparse gradient: values of some rows of a [height, width] parameter, or of a table's rows by key.
///
/// `rows` are row numbers or keys, one for each row of `values`; `merged` says that each occurs once. Buffers keep
/// their capacity. One thread.
struct SelectedRows {
  int64_t height = 0;
  std::vector<uint64_t> rows;
  Tensor values;  ///< [rows.size(), width] float
  bool merged = false;
  /// Where each row's weights are, when whoever made the gradient knew (null: a row that is never updated), so that
  /// the update looks nothing up again. Empty or one a row; who changes `rows` clears it.
  std::vector<float*> row_pointers;
};

}  // namespace millrace
