#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "serving/predictor.h"

namespace millrace {

/// A slot whose columns are missing in a file.
struct AbsentSlot {
  std::string slot;
  std::string column;              ///< the first missing column
  std::vector<std::string> tasks;  ///< losses whose metrics need the slot
};

/// Finds slots without columns among `names` that do not affect any score: labels, weights. `names` come from the
/// header of a CSV or columnar file or from the first JSON line; for JSON, only slots count without which that line
/// would be bad. Finds none if `names` is empty or lacks all columns that scores need, as for a header with another
/// delimiter: reading the rows then reports the error.
std::vector<AbsentSlot> AbsentSlotsOf(const Predictor& predictor, const DataFeedDesc& desc,
                                      const std::vector<std::string>& names);

/// The same for the names in a file. Finds none if the file is not regular (a pipe can be read only once) or its names
/// cannot be read. Starts a Python interpreter for a columnar file. Fails only with kCancelled after a stop request.
Result<std::vector<AbsentSlot>> FindAbsentSlots(const Predictor& predictor, const DataFeedFactory& feeds,
                                                const DataFeedDesc& desc, const std::string& file,
                                                const std::stop_token& stop);

}  // namespace millrace
