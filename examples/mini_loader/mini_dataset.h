#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "dataset.h"

namespace mini {

/// The two numbers of a line.
using MiniSample = std::array<double, 2>;

/// Reads lines "1.01,2.02" of part files, file after file, again and again.
class MiniDataset final : public Dataset<MiniSample> {
 public:
  /// With `shuffle_after_epoch`, the files are read in another order, which `seed` and the epoch give, from the second
  /// epoch on. `paths` is not empty.
  MiniDataset(std::vector<std::string> paths, bool shuffle_after_epoch, uint64_t seed);

  /// One sample. kBadData with file and line for a line that is not two numbers, and for files without any line.
  millrace::Result<LoadTargetList<MiniSample>> Next(const std::stop_token& stop) override;

 private:
  /// The next line of the epoch; false at its end.
  millrace::Result<bool> ReadLine(std::string* line);
  void ShuffleAfterEpoch();

  std::vector<std::string> paths_;
  const bool shuffle_after_epoch_;
  const uint64_t seed_;
  uint64_t current_epoch_ = 0;
  size_t next_path_ = 0;  ///< of the current epoch
  std::ifstream in_stream_;
  int64_t line_number_ = 0;  ///< of the line that was read last
};

}  // namespace mini
