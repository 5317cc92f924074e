#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/hash.h"

namespace millrace {

/// Random numbers with the same sequence per seed for every compiler and standard library.
///
/// xoshiro256++ by Blackman and Vigna ("Scrambled linear pseudorandom number generators", ACM TOMS 2021; the public
/// domain xoshiro256plusplus.c), seeded with SplitMix64. 32 bytes; copyable; one thread.
class Rng {
 public:
  explicit constexpr Rng(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15U;
      word = Mix64(seed);
    }
  }

  /// 64 random bits.
  constexpr uint64_t Next() {
    const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Exactly uniform in [0, bound); `bound` > 0. Lemire, "Fast random integer generation in an interval" (ACM TOMACS
  /// 2019): one multiplication, and a division only if a draw may be rejected.
  constexpr uint64_t Below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(Next()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t threshold = (0 - bound) % bound;
      while (static_cast<uint64_t>(product) < threshold) product = static_cast<Wide>(Next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }

  /// Uniform in [0, 1): a multiple of 2^-53.
  constexpr double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  std::array<uint64_t, 4> state_{};
};

}  // namespace millrace
