#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace millrace {

/// Estimates the number of distinct ids within about 0.8 %, in 16 KiB: HyperLogLog (Flajolet et al. 2007) with linear
/// counting for small numbers. One thread.
class HyperLogLog {
 public:
  void Add(uint64_t id);
  double Estimate() const;

 private:
  static constexpr int kIndexBits = 14;
  std::array<uint8_t, 1 << kIndexBits> registers_{};
};

/// Counts ids: exactly up to `bound` distinct ones; beyond that, rare ids are dropped and other counts are lower bounds
/// (Misra and Gries 1982). One thread.
class IdCounts {
 public:
  struct Entry {
    uint64_t id = 0;
    int64_t count = 0;
    int64_t clicks = 0;  ///< of these, rows with a positive label
  };

  explicit IdCounts(size_t bound) : bound_(bound) {}

  void Add(uint64_t id, bool clicked);

  bool exact() const { return forgotten_ == 0; }
  /// Number of distinct ids: exact, or HyperLogLog's estimate.
  double cardinality() const { return exact() ? static_cast<double>(counts_.size()) : sketch_.Estimate(); }
  /// Maximum error of the counts in Top(), which are never too high; 0 if exact.
  int64_t largest_error() const { return forgotten_; }
  /// The most frequent ids; ties by id.
  std::vector<Entry> Top(size_t entries) const;

 private:
  struct Count {
    int64_t count = 0;
    int64_t clicks = 0;
  };
  void Forget();

  size_t bound_;
  int64_t forgotten_ = 0;
  std::unordered_map<uint64_t, Count> counts_;
  HyperLogLog sketch_;
};

}  // namespace millrace
