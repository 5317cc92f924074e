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

/// Input and output of ConvertToInstant.
struct ConvertRequest {
  const DataFeedDesc* desc = nullptr;                  ///< describes the text: slots, command and policies
  DataFeedFactory feeds = DataFeedFactory::Builtin();  ///< including plugin classes for desc.name
  std::vector<std::string> files;
  std::string output_dir;         ///< created if missing
  std::string prefix = "part";    ///< files are PREFIX-00000, PREFIX-00001, ...
  uint64_t part_bytes = 1 << 28;  ///< a file ends with the batch that reaches this size
};

struct ConvertReport {
  int64_t parts = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  bool resumed = false;
  PassStats stats;  ///< of the input read by this call
};

/// Reads text like a QueueDataset and writes its rows to binary files for a FileInstantDataset. Batches and their order
/// are the same, because every file except the last holds whole batches.
///
/// Needs the memory of a pass and of one batch's bytes. Files appear atomically. OUTPUT/PREFIX.state records the
/// converted input: after a stop or a failure, the same call continues after the finished files. Fails with
/// kInvalidConfig if the folder holds the files of other input, kBadData if the state file is damaged, kIo if a file
/// cannot be written, kCancelled after a stop request, and with the failures of reading.
Result<ConvertReport> ConvertToInstant(const ConvertRequest& request, std::stop_token stop);

}  // namespace millrace
