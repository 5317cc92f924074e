#pragma once

#include <algorithm>
#include <cstdint>

#include "core/status.h"
#include "runtime/op_kernel.h"

namespace millrace {

/// Calls fill(begin, end) for one piece of [0, count) after another. A parameter may be gigabytes: before anything was
/// trained a stop request ends the work between two pieces, kCancelled. Later all are filled, since what a stop leaves
/// within a batch is known of loops alone.
template <class F>
Status InPieces(const RunContext& context, int64_t count, const F& fill) {
  constexpr int64_t kPiece = int64_t{1} << 22;
  const bool may_stop = context.batch == nullptr && context.step == 0;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    if (may_stop && begin > 0 && context.stop.stop_requested()) return Cancelled("stopped while filling a tensor");
    fill(begin, std::min(count, begin + kPiece));
  }
  return Status::Ok();
}

}  // namespace millrace
