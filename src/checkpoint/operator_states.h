#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "job/run_hooks.h"
#include "runtime/frame.h"

namespace millrace {

/// The states of all kernels of `frames` that have one. A failure, or what a plugin threw, names the operator.
Result<std::vector<OperatorState>> SaveOperatorStates(const std::vector<const Frame*>& frames);

/// Puts the kernels of `frames`, which are new, where `states` stood. kInvalidConfig names an operator that the other
/// side lacks, that has other attributes, or that other workers had; kCancelled at a stop request.
/// A worker has one frame; those of a pipeline have several, which are named by their number among all.
Status LoadOperatorStates(const std::vector<OperatorState>& states, const std::vector<const Frame*>& frames,
                          bool is_pipeline, const std::stop_token& stop);

}  // namespace millrace
