#pragma once

#include <cstdint>
#include <string_view>

#include "core/hash.h"

namespace millrace {

/// How a draw identifies a file.
enum class DrawnBy : uint8_t {
  kName,    ///< name without scheme and folder, so moving the files does not change the draw
  kPath,    ///< path as written in the job: model.downsample of earlier checkpoints
  kEnding,  ///< the part after the last '/': eval.set.share of earlier checkpoints
  kNumber   ///< index in the dataset's list: dataset.sample_rate of earlier checkpoints
};

/// Draws a number in [0, 1) for each line. It depends only on a seed, the file and the line number, so threads, ranks,
/// passes and resumed runs all draw the same. A value type.
class LineDraw {
 public:
  LineDraw() = default;
  LineDraw(uint64_t seed, DrawnBy by) : seed_(seed), by_(by) {}

  /// The seed of a file for NumberOf.
  uint64_t SeedOf(std::string_view file, uint32_t number) const;
  static double NumberOf(uint64_t file_seed, uint64_t line) {
    return static_cast<double>(HashedNumber(file_seed, line) >> 11) * 0x1.0p-53;
  }

 private:
  uint64_t seed_ = 0;
  DrawnBy by_ = DrawnBy::kName;
};

/// Selects a share of the lines, by the number that `draw` gives each line, and counts the others. One thread; a copy
/// has its own count.
class LineShare {
 public:
  /// Delivers all lines.
  LineShare() = default;
  /// Delivers the lines with a number in [begin, end), or the others if `is_within` is false.
  LineShare(const LineDraw& draw, double begin, double end, bool is_within)
      : draw_(draw), begin_(begin), end_(end), is_within_(is_within) {}

  bool is_active() const { return begin_ < end_; }
  void BeginFile(std::string_view file, uint32_t number) { file_seed_ = draw_.SeedOf(file, number); }
  /// Whether a line of the file is not delivered.
  bool Excludes(uint64_t line) {
    if (!is_active()) return false;
    const double number = LineDraw::NumberOf(file_seed_, line);
    const bool is_other = (number >= begin_ && number < end_) != is_within_;
    excluded_ += is_other ? 1 : 0;
    return is_other;
  }
  int64_t excluded() const { return excluded_; }

 private:
  LineDraw draw_;
  double begin_ = 0;
  double end_ = 0;
  bool is_within_ = false;
  uint64_t file_seed_ = 0;
  int64_t excluded_ = 0;
};

}  // namespace millrace
