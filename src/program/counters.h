#pragma once

#include <string>
#include <vector>

#include "framework.pb.h"

namespace millrace {

/// What a program counts: the persistable variables to which its operators add from batch to batch, in the order of
/// their declarations. These are the states of `auc` that count all batches (slide_steps 0), and variables that become
/// themselves and something by `elementwise_add`, `elementwise_sub`, `sum`, `increment` or a `scale` that adds, at once
/// or by `assign`, and that nothing else writes. What several workers counted is to be added up, where the mean of a
/// statistic is taken. Not gradients that are merged over batches.
std::vector<std::string> CountersOf(const ProgramDesc& program);

/// Those of them that the forward part counts by itself, as an inference does too: not steps of learning rates, nor
/// what is counted of gradients.
std::vector<std::string> ForwardCountersOf(const ProgramDesc& program);

/// Those of them, int64 and float32, that nothing but the counting reads: workers may each count for themselves
/// (stat_var_names), and be added up later.
std::vector<std::string> UnreadCountersOf(const ProgramDesc& program);

/// Whether an operator is an `auc` that forgets no batch.
bool CountsAllBatches(const OpDesc& op);

}  // namespace millrace
