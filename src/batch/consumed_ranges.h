#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_batch.h"
#include "core/status.h"

namespace millrace {

/// Records the trained positions of a pass, as few intervals per source, so that a resumed run continues exactly there.
///
/// A position is the number, from 0, of a line or record in a file (source = file index), or of a row in the order of
/// an in-memory dataset (source 0). Adding a span costs O(log intervals), and allocates for a new source or when its
/// intervals double. Not thread-safe: each worker has one, and checkpoints merge them.
class ConsumedRanges {
 public:
  struct Interval {
    uint64_t begin = 0;
    uint64_t end = 0;
    friend bool operator==(const Interval&, const Interval&) = default;
  };

  /// Adds a span. CHECKs that it does not overlap trained positions, which would count twice.
  void Add(const BatchSpan& span);
  void Merge(const ConsumedRanges& other);
  bool Contains(uint32_t source, uint64_t position) const;
  /// Sorted, disjoint, not adjacent.
  const std::vector<Interval>& Intervals(uint32_t source) const;
  /// The first untrained position at or after `position`.
  uint64_t NextUntrained(uint32_t source, uint64_t position) const;
  uint64_t TotalPositions() const;
  /// Whether every position has a source below `sources` and is below `positions`.
  bool IsWithin(uint32_t sources, uint64_t positions) const;
  bool empty() const;
  /// Keeps memory: a second pass over the same files does not allocate.
  void Clear();

  /// Text form, one source per line: "3: 0-512 1024-2048".
  std::string ToText() const;
  /// Parses the text form. Fails with kBadData, naming the malformed line.
  static Result<ConsumedRanges> FromText(std::string_view text);

 private:
  std::map<uint32_t, std::vector<Interval>> sources_;
};

}  // namespace millrace
