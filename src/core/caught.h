#pragma once

#include <cxxabi.h>

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// What the exception that is being handled is as a failure of `task` ("training"); to be called within a catch block.
///
/// kUnavailable where memory ran out, as the tensor that wanted it says, or the system has no room for a thread; kIo
/// for what else the system refused; kInternal for all others, which only a mistake of ours throws: what plugins throw
/// is caught where they are called.
Status CaughtFailure(std::string_view task);

/// Runs `body`, which returns a Status or a Result, and returns what it gives; what it throws is its failure.
///
/// For where a thread begins, and where threads are started: an exception ends the task, not the process, and whoever
/// waits for the thread learns of it as of any failure. Nothing else of ours catches what it does not expect. Any
/// thread; costs nothing until something is thrown. The end that POSIX gives a thread from outside goes on.
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

/// The same for a body that makes `what`, as a maker of a plugin's does: a null pointer in its Result is
/// kInvalidConfig.
template <class Body>
auto CaughtMaking(const std::string& what, const Body& body) -> decltype(body()) {
  decltype(body()) made = Caught("making " + what, body);
  if (made.ok() && *made == nullptr) return InvalidConfig("making " + what + ": it made none");
  return made;
}

}  // namespace millrace
