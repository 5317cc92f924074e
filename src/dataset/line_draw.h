#pragma once

#include <cstdint>
#include <string_view>

#include "core/hash.h"

namespace millrace {

/// What tells the files of a draw apart.
enum class DrawnBy : uint8_t {
  kName,    ///< the name without scheme and folder, so that the same lines are drawn wherever the files lie
  kPath,    ///< as the job has it: model.downsample of earlier checkpoints
  kEnding,  ///< what follows the last '/': eval.set.share of earlier checkpoints
  kNumber   ///< its number in its dataset's list: dataset.sample_rate of earlier checkpoints
};

/// Draws a number from 0 to 1 for each line, by a seed, its file and its number alone: any number of threads and ranks,
/// every pass and a run that goes on draw the same. A value.
class LineDraw {
 public:
  LineDraw() = default;
  LineDraw(uint64_t seed, DrawnBy by) : seed_(seed), by_(by) {}

  /// What NumberOf asks for of a file.
  uint64_t SeedOf(std::string_view file, uint32_t number) const;
  static double NumberOf(uint64_t file_seed, uint64_t line) {
    return static_cast<double>(HashedNumber(file_seed, line) >> 11) * 0x1.0p-53;
  }

 private:
  uint64_t seed_ = 0;
  DrawnBy by_ = DrawnBy::kName;
};

}  // namespace millrace
