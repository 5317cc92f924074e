#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clickgen/click_log_options.h"
#include "core/status.h"

namespace millrace {

/// What was written of one split, and what a model can reach on it.
struct ClickLogSplit {
  std::string name;  ///< "train" or "test"
  std::vector<std::string> files;
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t clicks = 0;
  double attainable_auc = 0.5;
  double attainable_log_loss = 0;
};

/// Writes FOLDER/train/part-00000 and so on, FOLDER/test likewise when there are test rows, FOLDER/data_feed.prototxt
/// with the slots, and at last FOLDER/meta.json with the options and what is returned here.
///
/// The folder "-" writes the training rows to standard output and nothing else. Blocks of rows are made by
/// options.threads threads and written in order, so memory stays at some megabytes a thread. Part files that are there
/// already are overwritten. kInvalidConfig for options that are not valid, kIo for what cannot be written.
Result<std::vector<ClickLogSplit>> WriteClickLog(const ClickLogOptions& options, const std::string& folder);

/// meta.json: every option and every split.
std::string MetaJson(const ClickLogOptions& options, const std::vector<ClickLogSplit>& splits);

}  // namespace millrace
