#pragma once

#include <cstdint>
#include <string_view>

#include "dataset/line_draw.h"

namespace millrace {

/// Selects the lines a dataset delivers if evaluations use a share of them (EvalDesc.Set.share), by the number that
/// `draw` gives each line. Immutable and thread-safe.
class LineShare {
 public:
  /// Delivers all lines.
  LineShare() = default;
  /// Delivers the lines with a number in [begin, end), or the others if `is_within` is false.
  LineShare(const LineDraw& draw, double begin, double end, bool is_within)
      : draw_(draw), begin_(begin), end_(end), is_within_(is_within) {}

  bool is_active() const { return begin_ < end_; }
  /// The seed of a file for HandsOut.
  uint64_t SeedOf(std::string_view file, uint32_t number) const { return draw_.SeedOf(file, number); }
  bool HandsOut(uint64_t file_seed, uint64_t line) const {
    const double number = LineDraw::NumberOf(file_seed, line);
    return (number >= begin_ && number < end_) == is_within_;
  }

 private:
  LineDraw draw_;
  double begin_ = 0;
  double end_ = 0;
  bool is_within_ = false;
};

}  // namespace millrace
