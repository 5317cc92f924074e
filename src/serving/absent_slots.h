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

/// Finds slots whose columns are not among `names` and on which no score of the model depends: labels, weights. Names
/// are those of the header of CSV or a columnar file, or of the first line of JSON: of what that line lacks, only slots
/// count without which it would be a bad line. Finds none where there are no names, or none on which scores depend, as
/// of a header that is cut by another delimiter: whoever reads the rows says what is wrong.
std::vector<AbsentSlot> AbsentSlotsOf(const Predictor& predictor, const DataFeedDesc& desc,
                                      const std::vector<std::string>& names);

/// The same of a file, and of the names in it. Finds none where it is no plain file, since a pipe can be read only
/// once, and where its names cannot be read. Starts a Python for a columnar file. kCancelled.
Result<std::vector<AbsentSlot>> FindAbsentSlots(const Predictor& predictor, const DataFeedFactory& feeds,
                                                const DataFeedDesc& desc, const std::string& file,
                                                const std::stop_token& stop);

}  // namespace millrace
