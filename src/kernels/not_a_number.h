#pragma once

#include <cmath>
#include <type_traits>

namespace millrace {

// Selections that propagate NaN from either side, without branches. std::max, std::min and `x > 0 ? x : 0` lose the NaN
// of one side.

template <class T>
bool IsNan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

/// The larger value; NaN if either is.
template <class T>
T LargerOrNan(T a, T b) {
  return a > b || IsNan(a) ? a : b;
}

/// The smaller value; NaN if either is.
template <class T>
T SmallerOrNan(T a, T b) {
  return a < b || IsNan(a) ? a : b;
}

/// 0; NaN if the value is. For the flat side of a kink, because NaN is on neither side.
inline float ZeroOrNan(float value) { return std::isnan(value) ? value : 0.0F; }

/// -1, 0 or 1; NaN if the value is.
template <class T>
T SignOrNan(T value) {
  return value > 0 ? T{1} : value < 0 ? T{-1} : IsNan(value) ? value : T{0};
}

}  // namespace millrace
