#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Runs task(0) ... task(count - 1), each once, on at most `threads` threads (at least one, including the caller's); on
/// fewer if the system has no more. After a failure no other task starts. Fails with the failure of the failed task
/// with the lowest index; exceptions are converted (CaughtFailure) with `name` ("loading a table") in the message.
Status OnThreads(int threads, size_t count, std::string_view name, const std::function<Status(size_t)>& task);

/// Default number of threads without a job: the number of processors, at least one.
int ThreadsHere();

}  // namespace millrace
