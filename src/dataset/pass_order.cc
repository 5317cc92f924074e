#include "dataset/pass_order.h"

#include <algorithm>

namespace millrace {

PassOrder::PassOrder(uint64_t rows, const ConsumedRanges* trained) {
  uint64_t position = 0;
  const auto add = [&](uint64_t end) {
    if (end <= position) return;
    stretches_.push_back({size_, position, end - position});
    size_ += end - position;
  };
  if (trained != nullptr) {
    for (const ConsumedRanges::Interval& interval : trained->Intervals(0)) {
      add(std::min(interval.begin, rows));
      position = interval.end;
    }
  }
  add(rows);
}

void PassOrder::AppendSpans(uint64_t begin, uint64_t end, std::vector<BatchSpan>* spans) const {
  auto at = std::upper_bound(stretches_.begin(), stretches_.end(), begin,
                             [](uint64_t number, const Stretch& stretch) { return number < stretch.number; });
  for (--at; begin < end; ++at) {
    const uint64_t first = at->position + (begin - at->number);
    const uint64_t count = std::min(end, at->number + at->size) - begin;
    spans->push_back({0, first, first + count});
    begin += count;
  }
}

}  // namespace millrace
