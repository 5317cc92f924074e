#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"

namespace millrace {

class DataFeedDesc;

/// The columns of a file, in order.
struct FileColumns {
  std::vector<std::string> names;
  std::vector<std::string> types;  ///< by column if the format has types; empty otherwise
};

/// The columns that a file of `desc` names in its header, schema or first JSON line. Empty if it names none or if a
/// pipe_command would have to run. Starts a Python interpreter for a columnar file. Fails with InputOpener's errors,
/// kBadData for a malformed header or schema, kCancelled after a stop request.
Result<FileColumns> ColumnsOfFile(const DataFeedFactory& feeds, const DataFeedDesc& desc, const std::string& file,
                                  const std::stop_token& stop);

/// Whether the first line of a file names its columns.
bool HasHeader(const DataFeedDesc& desc);

}  // namespace millrace
