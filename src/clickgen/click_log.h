#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clickgen/click_log_options.h"
#include "core/status.h"

namespace millrace {

/// One split of a log, and the best metrics a model can reach on it.
struct ClickLogSplit {
  std::string name;  ///< "train" or "test"
  std::vector<std::string> files;
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t clicks = 0;
  double attainable_auc = 0.5;
  double attainable_log_loss = 0;
};

/// Writes FOLDER/train/part-00000 and so on, likewise FOLDER/test if there are test rows, FOLDER/data_feed.prototxt
/// with the slots, and finally FOLDER/meta.json with the options and the result.
///
/// For the folder "-", writes only the training rows, to standard output. options.threads threads generate blocks of
/// rows, which are written in order, so memory is a few megabytes per thread. Existing part files are overwritten.
/// Fails with kInvalidConfig for invalid options, kIo for a file or folder that cannot be written.
Result<std::vector<ClickLogSplit>> WriteClickLog(const ClickLogOptions& options, const std::string& folder);

/// The content of meta.json: all options and splits.
std::string MetaJson(const ClickLogOptions& options, const std::vector<ClickLogSplit>& splits);

}  // namespace millrace
