#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "job/run_hooks.h"
#include "runtime/frame.h"

namespace millrace {

/// Saves the state of every stateful kernel of `frames`. If a kernel fails, or a plugin throws, the error names the
/// operator.
Result<std::vector<OperatorState>> SaveOperatorStates(const std::vector<const Frame*>& frames);

/// Restores `states` into the kernels of new `frames`. kInvalidConfig names the first operator that is missing from the
/// states or from the frames, belongs to a different frame, or has different attributes. kCancelled after a stop
/// request; other errors of a kernel name its operator. With a pipeline, workers have several frames, and messages
/// count frames rather than workers.
Status LoadOperatorStates(const std::vector<OperatorState>& states, const std::vector<const Frame*>& frames,
                          bool is_pipeline, const std::stop_token& stop);

}  // namespace millrace
