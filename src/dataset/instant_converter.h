#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "dataset/dataset.h"

namespace millrace {

class DataFeedDesc;

/// What ConvertToInstant reads and writes.
struct ConvertRequest {
  const DataFeedDesc* desc = nullptr;                  ///< of the text: its slots, command and policies
  DataFeedFactory feeds = DataFeedFactory::Builtin();  ///< with the classes of plugins that desc.name may be
  std::vector<std::string> files;
  std::string output_dir;         ///< made when it is not there
  std::string prefix = "part";    ///< files are PREFIX-00000, PREFIX-00001, ...
  uint64_t part_bytes = 1 << 28;  ///< a file is ended after the batch that makes it this long
};

struct ConvertReport {
  int64_t parts = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  bool resumed = false;
  PassStats stats;  ///< of what this call read
};

/// Reads text as a QueueDataset does and writes its rows to binary files that a FileInstantDataset reads: the same
/// batches in the same order, as every file holds whole batches but for the last one.
///
/// Memory is what a pass needs, and a batch's bytes. Files appear whole or not at all. OUTPUT/PREFIX.state remembers
/// what of the input they hold: a call that was stopped or failed leaves the files so far, and the same call made again
/// goes on behind them. kInvalidConfig when the folder holds the files of other input; kCancelled at a stop request.
Result<ConvertReport> ConvertToInstant(const ConvertRequest& request, std::stop_token stop);

}  // namespace millrace
