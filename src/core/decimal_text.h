#pragma once

#include <cstddef>

namespace millrace {

/// Buffer size for the functions below.
inline constexpr size_t kMostDecimalText = 512;

/// Writes the output of std::to_chars in general format with precision 6, which C++ streams print, but several times
/// faster. Returns the end. Fast from 1e-16 to 1e27.
char* WriteSixDigits(double value, char* out);

/// Likewise in the fixed format with 0 to 50 decimals. Fast with up to 15 decimals and below 1e15 / 10^decimals.
char* WriteDecimals(double value, int decimals, char* out);

}  // namespace millrace
