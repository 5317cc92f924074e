#pragma once

#include "core/status.h"
#include "framework.pb.h"
#include "ranks/rank_group.h"
#include "runtime/scope.h"

namespace millrace {

/// Gives the persistable tensors of `program` in `root` the values that they have on the rank that leads: those that
/// are there and hold something. They lie in the host's memory. A collective of the ranks; costs their bytes once.
///
/// kInvalidConfig, on all ranks, where a rank has a tensor of another type or shape than the leader, or not at all.
Status TakeDenseOfLeader(const ProgramDesc& program, Scope& root, RankGroup& ranks);

}  // namespace millrace
