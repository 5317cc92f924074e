#pragma once

#include <cstdint>
#include <vector>

#include "batch/consumed_ranges.h"
#include "batch/slot_batch.h"

namespace millrace {

/// The positions of an in-memory order that a pass still has to train: all of them, or the gaps in ranges, numbered
/// 0, 1, 2, ... without gaps. Immutable; shared by threads.
class PassOrder {
 public:
  PassOrder() = default;
  /// Positions [0, rows) without those that `trained` (or null) holds for source 0.
  PassOrder(uint64_t rows, const ConsumedRanges* trained);

  uint64_t size() const { return size_; }
  /// Appends the spans of positions that numbers [begin, end) stand for.
  void AppendSpans(uint64_t begin, uint64_t end, std::vector<BatchSpan>* spans) const;

 private:
  struct Stretch {
    uint64_t number = 0;    ///< of its first position
    uint64_t position = 0;  ///< likewise
    uint64_t size = 0;
  };
  std::vector<Stretch> stretches_;
  uint64_t size_ = 0;
};

}  // namespace millrace
