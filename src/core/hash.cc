#include "core/hash.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

namespace millrace {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87U;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FU;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9U;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63U;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5U;

/// Takes a little-endian number from the front of `bytes`.
template <class T>
uint64_t Take(std::string_view* bytes) {
  T number;
  std::memcpy(&number, bytes->data(), sizeof(T));
  bytes->remove_prefix(sizeof(T));
  return number;
}

uint64_t Round(uint64_t lane, uint64_t input) { return std::rotl(lane + input * kPrime2, 31) * kPrime1; }

/// What 32 bytes at a time leave of the front of `bytes`; at least 32 of them.
uint64_t HashStripes(std::string_view* bytes) {
  uint64_t lanes[4] = {kPrime1 + kPrime2, kPrime2, 0, uint64_t{0} - kPrime1};
  while (bytes->size() >= 32) {
    for (uint64_t& lane : lanes) lane = Round(lane, Take<uint64_t>(bytes));
  }
  uint64_t hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
  for (const uint64_t lane : lanes) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  return hash;
}

}  // namespace

uint64_t XxHash64(std::string_view bytes) {
  const uint64_t size = bytes.size();
  uint64_t hash = (size >= 32 ? HashStripes(&bytes) : kPrime5) + size;
  while (bytes.size() >= 8) hash = std::rotl(hash ^ Round(0, Take<uint64_t>(&bytes)), 27) * kPrime1 + kPrime4;
  if (bytes.size() >= 4) hash = std::rotl(hash ^ (Take<uint32_t>(&bytes) * kPrime1), 23) * kPrime2 + kPrime3;
  while (!bytes.empty()) hash = std::rotl(hash ^ (Take<uint8_t>(&bytes) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

float HashedNormal(uint64_t seed, uint64_t i) {
  // Box and Muller; 1 - u is never zero.
  const double radius =
      std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(HashedNumber(seed, 2 * i) >> 11) * 0x1p-53));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(HashedNumber(seed, 2 * i + 1) >> 11) * 0x1p-53;
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace millrace
