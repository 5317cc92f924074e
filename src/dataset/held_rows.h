#pragma once

#include <cstdint>
#include <string_view>

#include "core/hash.h"

namespace millrace {

/// Which lines of its files a dataset hands out, where evaluations have a share of them (EvalDesc.Set.share). A number
/// from 0 to 1 is drawn for each line by the seed, the file's name (without its folder) and the line's number alone:
/// any number of threads and ranks, every pass and a run that goes on have the same. Constant and thread-safe.
class HeldRows {
 public:
  /// All of them.
  HeldRows() = default;
  /// Those whose number is in [begin, end), or (`is_within` false) the others.
  HeldRows(uint64_t seed, double begin, double end, bool is_within)
      : seed_(Mix64(seed, 0x7365745f6f66)), begin_(begin), end_(end), is_within_(is_within) {}

  bool is_active() const { return begin_ < end_; }
  /// What HandsOut asks for of a file: its name alone, so that the same lines are drawn wherever its folder lies.
  uint64_t SeedOf(std::string_view file) const {
    return Mix64(seed_, Fnv1a64(file.substr(file.find_last_of('/') + 1)));
  }
  bool HandsOut(uint64_t file_seed, uint64_t line) const {
    const double number = static_cast<double>(HashedNumber(file_seed, line) >> 11) * 0x1.0p-53;
    return (number >= begin_ && number < end_) == is_within_;
  }

 private:
  uint64_t seed_ = 0;
  double begin_ = 0;
  double end_ = 0;
  bool is_within_ = false;
};

}  // namespace millrace
