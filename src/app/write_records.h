#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Files of any format that readers know, to be written as one RecordIO file.
struct WriteRecordsRequest {
  std::vector<std::string> files;         ///< "FORMAT:PATH", or names that say their format
  std::string outputs;                    ///< ParseTensorSpecs' text
  std::string path;                       ///< of the RecordIO file
  std::vector<std::string> plugins = {};  ///< that bring formats
};

/// Writes every record in the order of the files, and tells the user on standard error how many. After a failure, or a
/// stop request, there is no file.
Status WriteRecords(const WriteRecordsRequest& request, const std::stop_token& stop);

}  // namespace millrace
