#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "job/job_session.h"
#include "job/trainer.h"
#include "report/run_summary.h"

namespace millrace {

/// Everything that `trainer` knows by name, made once.
const Environment& DefaultEnvironment();

/// The job of a file as `trainer` makes it; fails the test when it is not sound. `output_dir` may be empty.
std::shared_ptr<const CompiledJob> CompileJob(const std::string& path, const std::string& output_dir,
                                              const std::vector<std::string>& overrides = {},
                                              const Environment& environment = DefaultEnvironment());
/// A session of it.
std::unique_ptr<JobSession> MakeJob(const std::string& path, const std::string& output_dir,
                                    const std::vector<std::string>& overrides = {},
                                    const Environment& environment = DefaultEnvironment());

/// Runs a session without checkpoints or reports.
Result<RunReport> TrainJob(JobSession& session, std::stop_token stop = {});

}  // namespace millrace
