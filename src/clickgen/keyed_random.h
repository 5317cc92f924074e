#pragma once

#include <cstdint>

#include "core/hash.h"

namespace millrace {

/// A random number as a function of its key: stateless, and equal on every thread and machine.
template <class... Key>
constexpr uint64_t KeyedBits(uint64_t seed, Key... key) {
  ((seed = Mix64(seed, static_cast<uint64_t>(key))), ...);
  return seed;
}

/// Approximates a standard normal variable in a few instructions: the sum of four 16-bit uniforms. Never beyond 3.47.
constexpr double KeyedNormal(uint64_t bits) {
  const auto sum =
      static_cast<double>((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48));
  return (sum - 131070.0) / 37837.0;  // mean, and deviation 65536 / sqrt(3)
}

}  // namespace millrace
