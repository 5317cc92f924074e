#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

enum class DType : uint8_t { kBool, kUint8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64 };

size_t SizeOf(DType type);
std::string_view DTypeName(DType type);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUint8;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};

/// Sizes of a tensor's axes, at most kMaxRank of them; -1 stands for "the batch decides" in descriptions.
///
/// A description that is given more keeps the first ones and says so in too_many(); Compile refuses it, so that no
/// tensor ever has it.
class Dims {
 public:
  static constexpr int kMaxRank = 8;

  Dims() = default;
  Dims(std::initializer_list<int64_t> sizes);
  explicit Dims(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  bool too_many() const { return too_many_; }
  int64_t operator[](int axis) const { return sizes_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)]; }
  void set(int axis, int64_t size) { sizes_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)] = size; }
  void push_back(int64_t size);
  /// Product of all sizes; 1 for rank 0. Negative when a size is -1.
  int64_t numel() const { return Product(0, rank_); }
  /// Product of the sizes of axes [begin, end).
  int64_t Product(int begin, int end) const;
  std::span<const int64_t> sizes() const { return {sizes_.data(), static_cast<size_t>(rank_)}; }
  /// "[512, 13]".
  std::string ToString() const;
  friend bool operator==(const Dims& a, const Dims& b);

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
  bool too_many_ = false;
};

/// There is no memory for a tensor. Frame::Run turns it into the failure of the operator that wanted it.
class NoMemory : public std::bad_alloc {
 public:
  NoMemory(DType type, const Dims& dims);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// Values of one type in row-major order, with at most one level of LoD: offsets that cut axis 0 into sequences.
///
/// Owns a 64-byte aligned buffer that grows and never shrinks, or views memory that somebody else keeps alive (a
/// batch's column, another tensor). Not copyable. One thread writes; Hogwild's shared parameters are the exception,
/// written through core/racy.h alone.
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
  std::vector<float*> places;
};

}  // namespace millrace
