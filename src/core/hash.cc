#include "core/hash.h"

#include <cmath>
#include <numbers>

#include "core/xxhash.h"

namespace millrace {

uint64_t XxHash64(std::string_view bytes, uint64_t seed) {
  XxHash64Stream stream(seed);
  stream.Add(bytes);
  return stream.Hash();
}

float HashedNormal(uint64_t seed, uint64_t i) {
  // Box and Muller; 1 - u is never zero.
  const double radius =
      std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(HashedNumber(seed, 2 * i) >> 11) * 0x1p-53));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(HashedNumber(seed, 2 * i + 1) >> 11) * 0x1p-53;
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace millrace
