#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

#include "job/job_session.h"

namespace millrace {

/// Tries a compiled job without training: reads the first batch through the real pipe_command, runs the forward
/// operators on it, and prints the batch, the parameters and the operations an example costs on standard output.
/// Writes no file but, with QUARANTINE, an empty one for bad lines. When a few rows do not come within `patience`, the
/// batch is the first of them, and standard error says so: a command that goes on for ever may keep the others back.
Status ValidateJob(JobSession& session, std::stop_token stop,
                   std::chrono::milliseconds patience = std::chrono::seconds(5));

/// Multiplications and additions of matrix products, forward and backward, for one example.
int64_t FlopsPerExample(const ProgramDesc& program);

}  // namespace millrace
