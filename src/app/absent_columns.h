#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "serving/predictor.h"

namespace millrace {

/// A slot whose columns a file lacks.
struct AbsentSlot {
  std::string slot;
  std::string column;              ///< the first of them
  std::vector<std::string> tasks;  ///< names of the losses whose metrics are not computed without it
};

/// Finds slots whose columns `file` lacks and on which no score of the model depends: labels, weights. Columns are
/// those that the header of CSV or a columnar file names, or the first line of JSON: of what that line lacks, only
/// slots count without which it would be a bad line. Finds none where
/// - the file names no columns,
/// - it is no plain file, since a pipe can be read only once,
/// - its names cannot be read, or lack what scores depend on: whoever reads the rows says so.
///
/// Starts a Python for a columnar file. kCancelled.
Result<std::vector<AbsentSlot>> FindAbsentSlots(const Predictor& predictor, const DataFeedFactory& feeds,
                                                const DataFeedDesc& desc, const std::string& file,
                                                const std::stop_token& stop);

}  // namespace millrace
