#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

/// Mixes all bits of `x` into all bits of the result; a bijection.
///
/// The finalizer of SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014),
/// with the constants of David Stafford's variant 13, as in Vigna's public-domain splitmix64.c.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// An order-dependent hash of two numbers.
constexpr uint64_t Mix64(uint64_t a, uint64_t b) { return Mix64(Mix64(a + 0x9e3779b97f4a7c15U) + b); }

/// FNV-1a of 64 bits.
constexpr uint64_t Fnv1a64(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

/// A hash of a name, equal in every run and on every machine.
constexpr uint64_t HashName(std::string_view name) { return Mix64(Fnv1a64(name) ^ name.size()); }

/// XXH64 of the bytes, compatible with other implementations (xxHash specification, algorithm XXH64).
uint64_t XxHash64(std::string_view bytes, uint64_t seed = 0);

/// The i-th number of a seed's sequence, independent of the others, so any thread can compute it.
constexpr uint64_t HashedNumber(uint64_t seed, uint64_t i) { return Mix64(seed + (i + 1) * 0x9E3779B97F4A7C15ULL); }

/// The i-th value in [0, 1) of a seed's sequence, a multiple of 2^-24.
constexpr float HashedUniform(uint64_t seed, uint64_t i) {
  return static_cast<float>(HashedNumber(seed, i) >> 40) * 0x1p-24F;
}

/// The i-th standard normal value of a seed's sequence.
float HashedNormal(uint64_t seed, uint64_t i);

}  // namespace millrace
