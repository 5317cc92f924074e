#pragma once

#include <cstdint>
#include <vector>

#include "batch/consumed_ranges.h"
#include "batch/slot_batch.h"

namespace millrace {

/// The positions of an in-memory order that a pass still has to train, numbered 0, 1, 2, ... without gaps. Immutable;
/// shared by threads.
class PassOrder {
 public:
  PassOrder() = default;
  /// Positions [0, rows) without the ranges of source 0 in `trained`, which may be null.
  PassOrder(uint64_t rows, const ConsumedRanges* trained);

  uint64_t size() const { return size_; }
  /// Appends the spans of positions for numbers [begin, end).
  void AppendSpans(uint64_t begin, uint64_t end, std::vector<BatchSpan>* spans) const;

 private:
  struct Stretch {
    uint64_t number = 0;    ///< of its first position
    uint64_t position = 0;  ///< of its first position
    uint64_t size = 0;
  };
  std::vector<Stretch> stretches_;
  uint64_t size_ = 0;
};

}  // namespace millrace
