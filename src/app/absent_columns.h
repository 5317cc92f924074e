#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "serving/predictor.h"

namespace millrace {

/// A slot whose columns a file lacks.
struct AbsentSlot {
  std::string slot;
  std::string column;              ///< the first of them
  std::vector<std::string> tasks;  ///< names of the losses whose metrics are not computed without it
};

/// The slots that features make of columns which the header of `file` does not name, and on which no score of the model
/// depends: labels, weights. Nothing for files without a header, for what is no plain file, which can be read once
/// only, and for a header that cannot be read or lacks what scores depend on, which is told where lines are.
/// kCancelled.
Result<std::vector<AbsentSlot>> FindAbsentSlots(const Predictor& predictor, const DataFeedDesc& desc,
                                                const std::string& file, const std::stop_token& stop);

}  // namespace millrace
