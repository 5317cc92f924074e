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

}  // namespace millrace
