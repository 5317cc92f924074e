#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

/// Whether a value is NaN or infinite, tested by its bits so that loops vectorize as integer loops.
inline bool IsNonFinite(float value) {
  constexpr uint32_t kExponent = 0x7F800000U;
  return (std::bit_cast<uint32_t>(value) & kExponent) == kExponent;
}
inline bool IsNonFinite(double value) {
  constexpr uint64_t kExponent = 0x7FF0000000000000U;
  return (std::bit_cast<uint64_t>(value) & kExponent) == kExponent;
}

/// Number of NaN or infinite values.
template <class T>
int64_t CountNonFinite(std::span<const T> values) {
  constexpr size_t kPiece = 1 << 16;
  int64_t count = 0;
  for (size_t begin = 0; begin < values.size(); begin += kPiece) {
    uint32_t found = 0;
    for (const T value : values.subspan(begin, std::min(kPiece, values.size() - begin))) {
      found += IsNonFinite(value) ? 1 : 0;
    }
    count += found;
  }
  return count;
}

/// Index of the first such value; -1: none.
template <class T>
int64_t FirstNonFinite(std::span<const T> values) {
  const auto first = std::find_if(values.begin(), values.end(), [](T value) { return IsNonFinite(value); });
  return first == values.end() ? -1 : first - values.begin();
}

}  // namespace millrace
