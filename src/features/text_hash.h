#pragma once

#include <cstdint>
#include <string_view>

#include "core/xxhash.h"

namespace millrace {

/// The hash of features: XXH3 of 64 bits, with a seed, as everybody computes it (docs/features.md). Any thread.
inline uint64_t TextHash(std::string_view text, uint64_t seed = 0) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

}  // namespace millrace
