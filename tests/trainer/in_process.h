#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/job.h"
#include "trainer/run_summary.h"
#include "trainer/trainer.h"

namespace millrace {

/// Everything that `trainer` knows by name, made once.
const Environment& DefaultEnvironment();

/// The job of a file as `trainer` makes it; fails the test when it is not sound. `output_dir` may be empty.
std::unique_ptr<Job> MakeJob(const std::string& path, const std::string& output_dir,
                             const std::vector<std::string>& overrides = {},
                             const Environment& environment = DefaultEnvironment());

/// Runs a job without checkpoints or reports.
Result<RunReport> TrainJob(Job& job, std::stop_token stop = {});

}  // namespace millrace
