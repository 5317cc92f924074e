#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "core/status.h"

namespace millrace {

/// What work that may take long asks and tells every few megabytes.
struct LongWork {
  /// Ends the work: kCancelled.
  std::stop_token stop = {};
  /// Is told of each piece that is done, from whichever thread; may be empty.
  std::function<void(uint64_t bytes)> on_done = {};
  /// Is told of bytes that are to come, where only the work itself finds out; may be empty.
  std::function<void(uint64_t bytes)> on_expected = {};

  /// Tells of a piece. kCancelled after a stop request, with `what` was going on: "writing \"parameters\"".
  Status Done(uint64_t bytes, const std::string& what) const {
    if (on_done) on_done(bytes);
    return stop.stop_requested() ? Cancelled("stopped while " + what) : Status::Ok();
  }
};

}  // namespace millrace
