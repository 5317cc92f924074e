#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace millrace {

/// Sizes of a tensor's axes, at most kMaxRank; in descriptions, -1 is set by the batch.
///
/// A description with more axes keeps the first ones and sets too_many(); Compile rejects it, so no tensor has it.
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

}  // namespace millrace
