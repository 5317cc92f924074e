#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Runs task(0) ... task(count - 1), each once, on at most `threads` threads (at least one), the caller's among them;
/// fewer when the system has no more. After a failure no other task begins, and the failure of the first task among
/// those that failed is returned. `name` ("loading a table") says in a failure what threw.
Status OnThreads(int threads, size_t count, std::string_view name, const std::function<Status(size_t)>& task);

/// Threads for who has no job that says how many: as many as there are processors, at least one.
int ThreadsHere();

}  // namespace millrace
