#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace millrace {

/// Estimates how many different ids it saw, within about 0.8 %, in 16 KiB: HyperLogLog (Flajolet et al. 2007) with
/// linear counting for small numbers. One thread.
class HyperLogLog {
 public:
  void Add(uint64_t id);
  double Estimate() const;

 private:
  static constexpr int kIndexBits = 14;
  std::array<uint8_t, 1 << kIndexBits> registers_{};
};

/// How often each id occurs: exactly while there are at most `bound` different ones; after that rare ids are forgotten
/// and the counts of the others are lower bounds (Misra and Gries 1982). One thread.
class IdCounts {
 public:
  struct Entry {
    uint64_t id = 0;
    int64_t count = 0;
    int64_t clicks = 0;  ///< rows with a positive label among them
  };

  explicit IdCounts(size_t bound) : bound_(bound) {}

  void Add(uint64_t id, bool clicked);

  bool exact() const { return forgotten_ == 0; }
  /// Number of different ids: exact, or HyperLogLog's.
  double cardinality() const { return exact() ? static_cast<double>(counts_.size()) : sketch_.Estimate(); }
  /// Counts of Top() are too low by this at most; 0 when exact.
  int64_t largest_error() const { return forgotten_; }
  /// The most frequent ids; equal ones by id.
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
