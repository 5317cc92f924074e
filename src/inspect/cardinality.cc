#include "inspect/cardinality.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/hash.h"

namespace millrace {

void HyperLogLog::Add(uint64_t id) {
  const uint64_t hash = Mix64(id + 0x9e3779b97f4a7c15U);
  uint8_t& largest = registers_[hash >> (64 - kIndexBits)];
  const auto rank =
      static_cast<uint8_t>(std::countl_zero((hash << kIndexBits) | (uint64_t{1} << (kIndexBits - 1))) + 1);
  largest = std::max(largest, rank);
}

double HyperLogLog::Estimate() const {
  const auto size = static_cast<double>(registers_.size());
  double sum = 0;
  int zeros = 0;
  for (uint8_t rank : registers_) {
    sum += std::ldexp(1.0, -rank);
    zeros += rank == 0 ? 1 : 0;
  }
  const double estimate = 0.7213 / (1 + 1.079 / size) * size * size / sum;
  return estimate <= 2.5 * size && zeros > 0 ? size * std::log(size / zeros) : estimate;
}

void IdCounts::Add(uint64_t id, bool clicked) {
  sketch_.Add(id);
  Count& count = counts_[id];
  ++count.count;
  count.clicks += clicked ? 1 : 0;
  if (counts_.size() > bound_) Forget();
}

// Subtracts the median count from every id and drops those without a remaining count, at least half.
void IdCounts::Forget() {
  std::vector<int64_t> counts;
  counts.reserve(counts_.size());
  for (const auto& [id, count] : counts_) counts.push_back(count.count);
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  const int64_t median = *middle;
  forgotten_ += median;
  for (auto it = counts_.begin(); it != counts_.end();) {
    Count& count = it->second;
    const int64_t left = count.count - median;
    if (left <= 0) {
      it = counts_.erase(it);
      continue;
    }
    // Clicks shrink with the count, to keep their ratio.
    const double kept = static_cast<double>(left) / static_cast<double>(count.count);
    count.clicks = std::llround(static_cast<double>(count.clicks) * kept);
    count.count = left;
    ++it;
  }
}

std::vector<IdCounts::Entry> IdCounts::Top(size_t entries) const {
  std::vector<Entry> top;
  top.reserve(counts_.size());
  for (const auto& [id, count] : counts_) top.push_back({id, count.count, count.clicks});
  const size_t kept = std::min(entries, top.size());
  std::partial_sort(
      top.begin(), top.begin() + static_cast<std::ptrdiff_t>(kept), top.end(),
      [](const Entry& a, const Entry& b) { return a.count != b.count ? a.count > b.count : a.id < b.id; });
  top.resize(kept);
  return top;
}

}  // namespace millrace
