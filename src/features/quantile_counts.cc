#include "features/quantile_counts.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace millrace {
namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;

uint64_t KeyOf(double number) {
  const auto bits = std::bit_cast<uint64_t>(number == 0 ? 0.0 : number);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

double NumberOf(uint64_t key) { return std::bit_cast<double>((key & kSign) != 0 ? key ^ kSign : ~key); }

}  // namespace

void QuantileCounts::Add(double number) { Count(KeyOf(number), 1); }

void QuantileCounts::Add(const QuantileCounts& other) {
  DropBits(other.dropped_bits_);
  for (const auto& [key, count] : other.counts_) Count(key, count);
}

void QuantileCounts::Put(WireWriter* out) const {
  out->Put(dropped_bits_);
  out->Put(static_cast<uint64_t>(counts_.size()));
  for (const auto& [key, count] : counts_) {
    out->Put(key);
    out->Put(count);
  }
}

void QuantileCounts::AddFrom(WireReader* in) {
  const auto dropped = in->Get<int>();
  if (dropped < 0 || dropped > 63) return in->Fail();
  DropBits(dropped);
  const auto size = in->Get<uint64_t>();
  for (uint64_t i = 0; i < size && in->ok(); ++i) {
    const auto key = in->Get<uint64_t>();
    Count(key, in->Get<int64_t>());
  }
}

void QuantileCounts::Count(uint64_t key, int64_t count) {
  counts_[key >> dropped_bits_ << dropped_bits_] += count;
  count_ += count;
  if (counts_.size() > kMost) Coarsen();
}

void QuantileCounts::DropBits(int bits) {
  if (bits <= dropped_bits_) return;
  dropped_bits_ = bits;
  std::unordered_map<uint64_t, int64_t> coarser;
  for (const auto& [key, count] : counts_) coarser[key >> bits << bits] += count;
  counts_ = std::move(coarser);
}

void QuantileCounts::Coarsen() {
  std::vector<uint64_t> keys;
  for (const auto& [key, count] : counts_) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  // Neighbors stay separate unless all bits in which they differ are dropped.
  size_t apart[65] = {};
  for (size_t i = 1; i < keys.size(); ++i) ++apart[std::bit_width(keys[i] ^ keys[i - 1])];
  int bits = 64;
  for (size_t left = 1; bits > dropped_bits_ && left + apart[bits] <= kMost; --bits) left += apart[bits];
  DropBits(bits);
}

std::vector<double> QuantileCounts::Boundaries(int parts) const {
  std::vector<std::pair<uint64_t, int64_t>> sorted(counts_.begin(), counts_.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> boundaries;
  int64_t below = 0;
  int part = 1;
  for (size_t i = 0; i < sorted.size(); ++i) {
    // Index in the sorted numbers, from 0, at which the next part starts.
    const auto begin = [&] { return count_ * part / parts; };
    const int64_t end = below + sorted[i].second;
    const bool begins_here = part < parts && begin() < end;
    while (part < parts && begin() < end) ++part;
    if (begins_here && i > 0) boundaries.push_back(NumberOf(sorted[i].first));
    below = end;
  }
  return boundaries;
}

double QuantileCounts::Median() const {
  std::vector<std::pair<uint64_t, int64_t>> sorted(counts_.begin(), counts_.end());
  std::sort(sorted.begin(), sorted.end());
  int64_t above = (count_ + 1) / 2;
  const auto middle =
      std::find_if(sorted.begin(), sorted.end(), [&](const auto& one) { return (above -= one.second) <= 0; });
  return NumberOf(middle->first);
}

}  // namespace millrace
