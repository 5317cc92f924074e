#include "ranks/micro_batch_sums.h"

#include <algorithm>
#include <cstring>

namespace millrace {

void FloatView::CopyTo(float* to) const {
  if (size() > 0) std::memcpy(to, bytes_.data(), size() * sizeof(float));
}

void FloatView::AddTo(float* sum) const {
  const char* const from = bytes_.data();
  for (size_t i = 0; i < size(); ++i) {
    float value = 0;
    std::memcpy(&value, from + i * sizeof(float), sizeof(float));
    sum[i] += value;
  }
}

void DenseValues::Take(const FloatView& from) {
  values.resize(from.size());
  from.CopyTo(values.data());
}

void RowValues::Add(const RowValues& other) {
  if (keys.empty() && !other.keys.empty()) width = other.width;
  size_t both = 0;
  for (size_t a = 0, b = 0; a < keys.size() && b < other.keys.size();) {
    const bool is_both = keys[a] == other.keys[b];
    both += is_both ? 1 : 0;
    const bool a_is_next = keys[a] <= other.keys[b];
    b += is_both || !a_is_next ? 1 : 0;
    a += a_is_next ? 1 : 0;
  }
  // From the back: what is written lies behind what is still to be read.
  size_t a = keys.size();
  size_t b = other.keys.size();
  size_t to = a + b - both;
  keys.resize(to);
  values.resize(to * width);
  while (b > 0) {
    --to;
    float* const row = values.data() + to * width;
    if (a > 0 && keys[a - 1] >= other.keys[b - 1]) {
      const bool is_both = keys[--a] == other.keys[b - 1];
      keys[to] = keys[a];
      if (to != a) std::copy_n(values.data() + a * width, width, row);
      if (!is_both) continue;
      --b;
      FloatView(std::span(other.values).subspan(b * width, width)).AddTo(row);
    } else {
      --b;
      keys[to] = other.keys[b];
      std::copy_n(other.values.data() + b * width, width, row);
    }
  }
}

void SumEqualKeys(std::span<const uint64_t> keys, const float* values, size_t width, RowValues* sum) {
  std::vector<std::pair<uint64_t, uint32_t>> order(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) order[i] = {keys[i], static_cast<uint32_t>(i)};
  std::sort(order.begin(), order.end());
  sum->width = width;
  sum->keys.clear();
  sum->values.resize(keys.size() * width);
  float* to = sum->values.data();
  for (const auto& [key, i] : order) {
    const std::span<const float> row(values + i * width, width);
    if (!sum->keys.empty() && sum->keys.back() == key) {
      FloatView(row).AddTo(to - width);
      continue;
    }
    sum->keys.push_back(key);
    to = std::copy(row.begin(), row.end(), to);
  }
  sum->values.resize(sum->keys.size() * width);
}

}  // namespace millrace
