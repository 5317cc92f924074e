#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/wire.h"

namespace millrace {

/// Counts numbers for quantiles. Up to kMost different numbers are counted separately, so quantiles are exact. With
/// more, neighboring numbers, equal except for a fixed number of lowest bits, are counted together, so that kMost
/// counts cover the whole range; a quantile's relative error is then below one in a thousand if the numbers span less
/// than 60 powers of two. The result does not depend on the order of numbers, or on their distribution over counters
/// that are added. One thread.
class QuantileCounts {
 public:
  static constexpr size_t kMost = size_t{1} << 16;

  /// Counts a finite number.
  void Add(double number);
  void Add(const QuantileCounts& other);
  /// Appends the counts to a message; AddFrom adds those in a message and fails (WireReader::ok) if it is malformed.
  void Put(WireWriter* out) const;
  void AddFrom(WireReader* in);
  int64_t count() const { return count_; }
  /// Whether quantiles are exact.
  bool is_exact() const { return dropped_bits_ == 0; }
  /// The boundaries of `parts` parts with equal counts, ascending; fewer if a number is frequent. A part starts at its
  /// boundary; the smallest number is not a boundary.
  std::vector<double> Boundaries(int parts) const;
  /// The median, for an even count the lower of the two middle numbers. Requires a number.
  double Median() const;

 private:
  void Count(uint64_t key, int64_t count);
  void DropBits(int bits);
  /// Drops the fewest bits that leave kMost counts.
  void Coarsen();

  std::unordered_map<uint64_t, int64_t> counts_;  ///< by a number's bits, mapped to preserve order
  int dropped_bits_ = 0;                          ///< bits of keys set to 0
  int64_t count_ = 0;
};

}  // namespace millrace
