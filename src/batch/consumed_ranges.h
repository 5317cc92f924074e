#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_batch.h"
#include "core/status.h"

namespace millrace {

/// Remembers which units of a pass were trained, as few intervals per source, so that a run can go on exactly there.
///
/// A unit is a line of a file (source = file number) or a position of an in-memory order (source 0). Adding a span
/// costs O(log intervals), and an allocation for a new source and when its intervals double. Not thread-safe: each
/// worker keeps one, the checkpoint merges them.
class ConsumedRanges {
 public:
  struct Interval {
    uint64_t begin = 0;
    uint64_t end = 0;
    friend bool operator==(const Interval&, const Interval&) = default;
  };

  /// Adds a span. Spans that overlap trained units are our bug: a unit would count twice (CHECK).
  void Add(const BatchSpan& span);
  void Merge(const ConsumedRanges& other);
  bool Contains(uint32_t source, uint64_t unit) const;
  /// Sorted, disjoint, not touching.
  const std::vector<Interval>& Intervals(uint32_t source) const;
  /// The first unit at or after `unit` that is not trained.
  uint64_t NextUntrained(uint32_t source, uint64_t unit) const;
  uint64_t TotalUnits() const;
  /// True when every unit is of a source below `sources`, and below `units` itself.
  bool IsWithin(uint32_t sources, uint64_t units) const;
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
