#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "app/job_input.h"
#include "core/status.h"

namespace millrace {

/// What `inspect convert` is asked for.
struct ConvertJobRequest {
  InputJob job;
  std::string output_dir;
  uint64_t part_bytes = 0;
};

/// Writes the files of a job, and those of its evaluation, as binary ones for a FileInstantDataset: OUTPUT/part-* and
/// OUTPUT/eval-*, OUTPUT/job.prototxt, the job that trains from them, and OUTPUT/text_feed.prototxt, which says how the
/// text was read: the model of that job knows used slots alone. Says on standard error what was written.
/// Errors are those of reading the job and ConvertToInstant's.
Status ConvertJob(const ConvertJobRequest& request, std::stop_token stop);

}  // namespace millrace
