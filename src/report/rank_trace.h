#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "device_worker/batch_trace.h"
#include "ranks/rank_group.h"

namespace millrace {

/// The trace of a job of ranks, where one leads; empty elsewhere. Each rank is a process of it. A collective.
///
/// The steady clocks of hosts begin when these start. Where they differ from that of the rank that leads, times are
/// moved by what they differ behind a barrier: they are true to about as long as a message takes.
Result<std::string> TraceOfRanks(RankGroup& ranks, const Executable& executable,
                                 const std::vector<const BatchTrace*>& traces, const SpanLog* readers);

/// What a clock is ahead of the leading rank's, when they showed `theirs` and `ours` at about the same time: nothing,
/// where both can be one clock.
int64_t ClockOffset(int64_t theirs, int64_t ours);

}  // namespace millrace
