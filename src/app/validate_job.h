#pragma once

#include <cstdint>
#include <stop_token>

#include "trainer/job.h"

namespace millrace {

/// Tries a compiled job without training: reads the first batch through the real pipe_command, runs the forward
/// operators on it, and prints the batch, the parameters and the operations an instance costs on standard output.
/// Writes no file.
Status ValidateJob(Job& job, std::stop_token stop);

/// Multiplications and additions of matrix products, forward and backward, for one instance.
int64_t FlopsPerInstance(const ProgramDesc& program);

}  // namespace millrace
