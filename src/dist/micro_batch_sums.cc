#include "dist/micro_batch_sums.h"

#include <algorithm>

namespace millrace {
namespace {

void AddTo(float* sum, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += values[i];
}

}  // namespace

void DenseValues::Add(const DenseValues& other) { AddTo(values.data(), other.values.data(), values.size()); }

void RowValues::Add(const RowValues& other) {
  RowValues sum;
  sum.width = width;
  sum.keys.reserve(keys.size() + other.keys.size());
  sum.values.reserve(values.size() + other.values.size());
  const auto take = [&sum](const RowValues& from, size_t i) {
    sum.keys.push_back(from.keys[i]);
    const float* row = from.values.data() + i * from.width;
    sum.values.insert(sum.values.end(), row, row + from.width);
  };
  size_t a = 0;
  size_t b = 0;
  while (a < keys.size() || b < other.keys.size()) {
    if (b == other.keys.size() || (a < keys.size() && keys[a] < other.keys[b])) {
      take(*this, a++);
    } else if (a == keys.size() || other.keys[b] < keys[a]) {
      take(other, b++);
    } else {
      take(*this, a++);
      AddTo(sum.values.data() + sum.values.size() - width, other.values.data() + b * width, width);
      ++b;
    }
  }
  *this = std::move(sum);
}

RowValues SumEqualKeys(std::span<const uint64_t> keys, const float* values, size_t width) {
  std::vector<std::pair<uint64_t, uint32_t>> order(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) order[i] = {keys[i], static_cast<uint32_t>(i)};
  std::sort(order.begin(), order.end());
  RowValues sum;
  sum.width = width;
  sum.keys.reserve(keys.size());
  sum.values.reserve(keys.size() * width);
  for (const auto& [key, i] : order) {
    const float* row = values + i * width;
    if (!sum.keys.empty() && sum.keys.back() == key) {
      AddTo(sum.values.data() + sum.values.size() - width, row, width);
      continue;
    }
    sum.keys.push_back(key);
    sum.values.insert(sum.values.end(), row, row + width);
  }
  return sum;
}

}  // namespace millrace
