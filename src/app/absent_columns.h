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

/// The slots that features make of columns which `file` does not name, in its header or as a columnar file does, and
/// on which no score of the model depends: labels, weights. Nothing for files without names, for what is no plain file,
/// which can be read once only, and for names that cannot be read or lack what scores depend on, which is told where
/// rows are. Of a columnar file it takes the start of a Python more. kCancelled.
Result<std::vector<AbsentSlot>> FindAbsentSlots(const Predictor& predictor, const DataFeedFactory& feeds,
                                                const DataFeedDesc& desc, const std::string& file,
                                                const std::stop_token& stop);

}  // namespace millrace
