#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// What `inspect convert` is asked for.
struct ConvertJobRequest {
  std::string trainer_desc;            ///< FILE of the job
  std::vector<std::string> overrides;  ///< --set
  std::string output_dir;
  uint64_t part_bytes = 0;
};

/// Writes the files of a job, and those of its evaluation, as binary ones for a FileInstantDataset: OUTPUT/part-* and
/// OUTPUT/eval-*, and OUTPUT/job.prototxt, the job that trains from them. Says on standard error what was written.
/// Errors are those of reading the job and ConvertToInstant's.
Status ConvertJob(const ConvertJobRequest& request, std::stop_token stop);

}  // namespace millrace
