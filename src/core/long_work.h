#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "core/status.h"

namespace millrace {

/// Callbacks for long-running work, used every few megabytes.
struct LongWork {
  /// Cancels the work (kCancelled).
  std::stop_token stop = {};
  /// Receives the size of each finished piece, from any thread; can be empty.
  std::function<void(uint64_t bytes)> on_done = {};
  /// Receives bytes still to come if only the work can determine them; can be empty.
  std::function<void(uint64_t bytes)> on_expected = {};

  /// Reports a finished piece. Fails with kCancelled after a stop request; `what` was in progress: "writing
  /// \"parameters\"".
  Status Done(uint64_t bytes, const std::string& what) const {
    if (on_done) on_done(bytes);
    return stop.stop_requested() ? Cancelled("stopped while " + what) : Status::Ok();
  }
};

}  // namespace millrace
