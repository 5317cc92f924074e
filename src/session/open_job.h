#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "config/trainer_desc_reader.h"
#include "core/file.h"
#include "job/compiled_job.h"
#include "job/job_session.h"

namespace millrace {

/// How OpenJob prepares a loaded job.
struct OpenOptions {
  std::string output_dir;
  std::string resume = "never";        ///< "auto", or a checkpoint: its features' statistics are used
  bool reads_input = true;             ///< check the headers of the input and compute statistics of features
  bool locks_folder = false;           ///< create and lock the output folder before computing statistics
  bool makes_session = true;           ///< false: only compile
  std::FILE* terminal = nullptr;       ///< for progress and notes; null: none
  std::vector<std::string> watched{};  ///< variables that a FetchHandler reads
  SessionInputs inputs{};
  std::function<void(LoadedConfig*)> on_prepared{};       ///< called before compiling; can be empty
  std::function<void(const CompiledJob&)> on_compiled{};  ///< called before the session is created; can be empty
};

/// A job that is ready to run. The environment outlives it.
struct OpenedJob {
  std::shared_ptr<const CompiledJob> job;
  std::unique_ptr<JobSession> session;  ///< null without makes_session
  FileDescriptor folder;                ///< the lock of the output folder, if OpenJob created it
};

/// Prepares, compiles and opens a loaded job, in steps after each of which the ranks agree: headers, statistics of
/// features, compiled job, session. A collective of `ranks`. The errors of CheckInputHeaders, MakeOutputFolder,
/// PrepareFeatures, CompiledJob::Create and JobSession::Create, on all ranks; kCancelled after a stop request.
Result<OpenedJob> OpenJob(RankGroup& ranks, LoadedConfig config, const Environment& environment, OpenOptions options,
                          const std::stop_token& stop);

}  // namespace millrace
