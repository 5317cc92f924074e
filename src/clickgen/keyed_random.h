#pragma once

#include <cstdint>

#include "core/hash.h"

namespace millrace {

/// A random number that is a function of its key: no state, the same on every thread and machine.
template <class... Key>
constexpr uint64_t KeyedBits(uint64_t seed, Key... key) {
  ((seed = Mix64(seed, static_cast<uint64_t>(key))), ...);
  return seed;
}

/// Near a standard normal variable, for a few instructions: four 16-bit uniforms summed. Never beyond 3.47.
constexpr double KeyedNormal(uint64_t bits) {
  const auto sum =
      static_cast<double>((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48));
  return (sum - 131070.0) / 37837.0;  // the mean, and the deviation 65536 / sqrt(3)
}

}  // namespace millrace
