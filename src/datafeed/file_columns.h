#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"

namespace millrace {

class DataFeedDesc;

/// The columns of a file, in their order.
struct FileColumns {
  std::vector<std::string> names;
  std::vector<std::string> types;  ///< of each of them, where the format has types; otherwise empty
};

/// The columns that a file of `desc` names in its header or schema, or in its first line of JSON; none where it names
/// none, or where a pipe_command would have to be run. Starts a Python for a columnar file. The opening's errors,
/// kBadData, kCancelled.
Result<FileColumns> ColumnsOfFile(const DataFeedFactory& feeds, const DataFeedDesc& desc, const std::string& file,
                                  const std::stop_token& stop);

/// Whether files of it name their columns in their first line.
bool HasHeader(const DataFeedDesc& desc);

}  // namespace millrace
