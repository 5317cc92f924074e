#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_batch.h"
#include "core/status.h"

namespace millrace {

/// Remembers which positions of a pass were trained, as few intervals per source, so that a run can go on exactly
/// there.
///
/// A position is the number, from 0, of a line or record in a file (source = file number), or of a row in the order of
/// an in-memory dataset (source 0). Adding a span
/// costs O(log intervals), and an allocation for a new source and when its intervals double. Not thread-safe: each
/// worker keeps one, the checkpoint merges them.
class ConsumedRanges {
 public:
  struct Interval {
    uint64_t begin = 0;
    uint64_t end = 0;
    friend bool operator==(const Interval&, const Interval&) = default;
  };

  /// Adds a span. Spans that overlap trained positions are our bug: a position would count twice (CHECK).
  void Add(const BatchSpan& span);
  void Merge(const ConsumedRanges& other);
  bool Contains(uint32_t source, uint64_t position) const;
  /// Sorted, disjoint, not touching.
  const std::vector<Interval>& Intervals(uint32_t source) const;
  /// The first position at or after `position` that is not trained.
  uint64_t NextUntrained(uint32_t source, uint64_t position) const;
  uint64_t TotalPositions() const;
  /// True when every position is of a source below `sources`, and below `positions` itself.
  bool IsWithin(uint32_t sources, uint64_t positions) const;
  bool empty() const;
  /// Keeps the memory: a second pass over the same files allocates nothing.
  void Clear();

  /// Text form, one source a line: "3: 0-512 1024-2048".
  std::string ToText() const;
  static Result<ConsumedRanges> FromText(std::string_view text);

 private:
  std::map<uint32_t, std::vector<Interval>> sources_;
};

}  // namespace millrace
