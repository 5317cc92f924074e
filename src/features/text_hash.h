#pragma once

#include <cstdint>
#include <string_view>

#include "core/xxhash.h"

namespace millrace {

/// The hash of features: 64-bit XXH3 with a seed, compatible with other implementations (docs/features.md). Any thread.
inline uint64_t TextHash(std::string_view text, uint64_t seed = 0) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

/// The hash of an id's eight bytes, lowest first: `hash {}` applied to bucketize, vocabulary and date_part.
inline uint64_t HashOfId(uint64_t id, uint64_t seed) {
  return TextHash({reinterpret_cast<const char*>(&id), sizeof(id)}, seed);
}

}  // namespace millrace
