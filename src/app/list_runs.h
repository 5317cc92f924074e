#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Runs that are to be compared.
struct RunsRequest {
  std::vector<std::string> folders;  ///< of runs, or with runs in them, as of a sweep
  std::string html;                  ///< the page to write, NAME.html; empty: none
  std::string sort_by;               ///< as CompareRuns has it
};

/// Prints the table of runs on standard output, what is missing of them on standard error, and writes the page. A
/// folder that cannot be read does not keep the others from being shown: its failure comes back afterwards.
Status ListRuns(const RunsRequest& request);

}  // namespace millrace
