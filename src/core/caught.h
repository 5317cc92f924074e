#pragma once

#include <cxxabi.h>

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Converts the current exception to a failure of `task` ("training"); call it within a catch block.
///
/// Returns kUnavailable if memory ran out (with the tensor's message) or a thread cannot start, kIo for other system
/// errors, and kInternal for the rest, which only our bugs throw: exceptions of plugins are caught where they are
/// called.
Status CaughtFailure(std::string_view task);

/// Runs `body`, which returns a Status or a Result, and converts exceptions to failures (CaughtFailure).
///
/// Used at the start of threads and where threads are started, so that an exception ends the task instead of the
/// process, and reaches the waiting thread as a failure. No other code of ours catches unexpected exceptions. Any
/// thread; free until something is thrown. Thread cancellation by POSIX passes through.
template <class Body>
auto Caught(std::string_view task, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return CaughtFailure(task);
  }
}

/// The same for a body that creates `what`, such as a plugin's maker: a null pointer in its Result becomes
/// kInvalidConfig.
template <class Body>
auto CaughtMaking(const std::string& what, const Body& body) -> decltype(body()) {
  decltype(body()) made = Caught("making " + what, body);
  if (made.ok() && *made == nullptr) return InvalidConfig("making " + what + ": it made none");
  return made;
}

}  // namespace millrace
