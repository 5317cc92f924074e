#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/wire.h"

namespace millrace {

/// Counts numbers for quantiles. Up to kMost different ones are counted each by itself, and quantiles are exact. Of
/// more of them neighbours are counted together: numbers whose lowest bits, the same ones for all, are alike but for
/// these. So kMost counts lie over the whole range, and a quantile is off by less than one in a thousand of itself
/// where the numbers span less than 60 powers of two. Whatever the order of numbers and however they are divided among
/// counts that are added up, the result is the same. One thread.
class QuantileCounts {
 public:
  static constexpr size_t kMost = size_t{1} << 16;

  /// Counts a finite number.
  void Add(double number);
  void Add(const QuantileCounts& other);
  /// Appends what was counted to a message; AddFrom adds what a message has. It fails (WireReader::ok) where that is
  /// none.
  void Put(WireWriter* out) const;
  void AddFrom(WireReader* in);
  int64_t count() const { return count_; }
  /// Whether quantiles are those of the numbers themselves.
  bool is_exact() const { return dropped_bits_ == 0; }
  /// Where the numbers are cut into `parts` with as many each, rising; fewer where a number is frequent. A part begins
  /// at its boundary; none begins at the least number, as nothing lies below it.
  std::vector<double> Boundaries(int parts) const;
  /// The number in the middle, of an even count the lower of the two; there is one at least.
  double Median() const;

 private:
  void Count(uint64_t key, int64_t count);
  void DropBits(int bits);
  /// Drops as few bits as leave kMost counts.
  void Coarsen();

  std::unordered_map<uint64_t, int64_t> counts_;  ///< by a number's bits, mapped so that they rise as numbers do
  int dropped_bits_ = 0;                          ///< of keys, which are 0
  int64_t count_ = 0;
};

}  // namespace millrace
