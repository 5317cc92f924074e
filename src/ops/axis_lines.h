#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "runtime/tensor.h"

namespace millrace {

/// A tensor as [outer, along, inner] around one axis, which an operator walks line by line.
struct AxisLines {
  int64_t outer = 1;
  int64_t along = 1;
  int64_t inner = 1;

  /// `axis` may count from the end. Throws std::invalid_argument for one that is not there, which only a gradient can
  /// ask for that is not its forward operator's: the axes of that one are checked when the program is compiled.
  static AxisLines Of(const Dims& dims, int64_t axis) {
    if (axis < -dims.rank() || axis >= dims.rank()) {
      throw std::invalid_argument("a tensor " + dims.ToString() + " has no axis " + std::to_string(axis));
    }
    const int front = static_cast<int>(axis < 0 ? axis + dims.rank() : axis);
    return {dims.Product(0, front), dims[front], dims.Product(front + 1, dims.rank())};
  }
  int64_t count() const { return outer * inner; }
  /// Where the line of this number begins.
  int64_t First(int64_t line) const { return line / inner * along * inner + line % inner; }
  /// Calls body(line, First(line)) for each line; its k-th value is at First(line) + k * inner.
  template <class Body>
  void ForEach(const Body& body) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) body(o * inner + i, o * along * inner + i);
    }
  }
};

/// The order of positions `a` and `b` whose values are `left` and `right`: by value, NaN behind every number, as in
/// Paddle; of equals the first comes first. `descending` turns the values around, and NaN comes first.
template <class T>
bool IsBefore(T left, T right, int64_t a, int64_t b, bool descending) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool left_is_nan = std::isnan(left);
    const bool right_is_nan = std::isnan(right);
    if (left_is_nan != right_is_nan) return left_is_nan == descending;
    if (left_is_nan) return a < b;
  }
  if (left == right) return a < b;
  return descending ? left > right : left < right;
}

/// `dims` without an axis, or with size 1 there; [1] when none is left.
inline Dims ReducedDims(const Dims& dims, int64_t axis, bool keep) {
  const int64_t front = axis < 0 ? axis + dims.rank() : axis;
  Dims out;
  for (int i = 0; i < dims.rank(); ++i) {
    if (i != front) out.push_back(dims[i]);
    if (i == front && keep) out.push_back(1);
  }
  if (out.rank() == 0) out.push_back(1);
  return out;
}

}  // namespace millrace
