#include "core/hash.h"

#include <algorithm>
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

constexpr size_t kStripe = 32;
constexpr uint64_t kLanes[4] = {kPrime1 + kPrime2, kPrime2, 0, uint64_t{0} - kPrime1};  // added to the seed

/// Takes whole stripes from the front of `bytes`.
void TakeStripes(uint64_t* lanes, std::string_view* bytes) {
  while (bytes->size() >= kStripe) {
    for (int i = 0; i < 4; ++i) lanes[i] = Round(lanes[i], Take<uint64_t>(bytes));
  }
}

/// The hash of `size` bytes, of which `bytes` are left behind the stripes.
uint64_t HashRest(const uint64_t* lanes, uint64_t size, std::string_view bytes) {
  uint64_t hash = lanes[2] + kPrime5;  // without a stripe that lane is the seed
  if (size >= kStripe) {
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (int i = 0; i < 4; ++i) hash = (hash ^ Round(0, lanes[i])) * kPrime1 + kPrime4;
  }
  hash += size;
  while (bytes.size() >= 8) hash = std::rotl(hash ^ Round(0, Take<uint64_t>(&bytes)), 27) * kPrime1 + kPrime4;
  if (bytes.size() >= 4) hash = std::rotl(hash ^ (Take<uint32_t>(&bytes) * kPrime1), 23) * kPrime2 + kPrime3;
  while (!bytes.empty()) hash = std::rotl(hash ^ (Take<uint8_t>(&bytes) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace

uint64_t XxHash64(std::string_view bytes, uint64_t seed) {
  const uint64_t size = bytes.size();
  uint64_t lanes[4] = {seed + kLanes[0], seed + kLanes[1], seed + kLanes[2], seed + kLanes[3]};
  TakeStripes(lanes, &bytes);
  return HashRest(lanes, size, bytes);
}

XxHash64Stream::XxHash64Stream() : lanes_{kLanes[0], kLanes[1], kLanes[2], kLanes[3]}, rest_{} {}

void XxHash64Stream::Add(std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t kept = size_ % kStripe;
  size_ += bytes.size();
  if (kept > 0) {
    const size_t taken = std::min(kStripe - kept, bytes.size());
    std::memcpy(rest_ + kept, bytes.data(), taken);
    bytes.remove_prefix(taken);
    if (kept + taken < kStripe) return;
    std::string_view stripe(rest_, kStripe);
    TakeStripes(lanes_, &stripe);
  }
  TakeStripes(lanes_, &bytes);
  if (!bytes.empty()) std::memcpy(rest_, bytes.data(), bytes.size());
}

uint64_t XxHash64Stream::Hash() const { return HashRest(lanes_, size_, {rest_, size_ % kStripe}); }

float HashedNormal(uint64_t seed, uint64_t i) {
  // Box and Muller; 1 - u is never zero.
  const double radius =
      std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(HashedNumber(seed, 2 * i) >> 11) * 0x1p-53));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(HashedNumber(seed, 2 * i + 1) >> 11) * 0x1p-53;
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace millrace
