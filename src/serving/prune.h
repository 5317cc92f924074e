#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "framework.pb.h"
#include "program/op_registry.h"

namespace millrace {

/// `program` without gradients and updates, and with operators that train otherwise
/// than they predict (dropout, batch_norm) predicting.
ProgramDesc ForwardProgram(const ProgramDesc& program, const OpRegistry& registry);

/// `program` without inputs that gradients alone read (OpBuilder::InputForGradient): what they are computed from, often
/// labels, is not needed to predict. Paddle's operators ask for them all the same.
ProgramDesc WithoutInputsForGradients(const ProgramDesc& program, const OpRegistry& registry);

/// The part of block 0 of `program` that computes `targets`, taking the variables of `given` as they come.
///
/// Keeps operators in their order, those with blocks of their own (while, conditional_block) with all of these, and
/// declares only what they name. A `print` becomes an assign; operators of those blocks that write no variable are left
/// out. A softmax_with_cross_entropy of which only the
/// probabilities are wanted becomes a softmax, so that no label is needed. kInvalidConfig for a target that nothing
/// computes.
Result<ProgramDesc> PruneProgram(const ProgramDesc& program, const std::vector<std::string>& targets,
                                 const std::vector<std::string>& given);

/// Variables that `program` reads before anything writes them and that are not persistable: what must be fed. In the
/// order of their declaration.
std::vector<std::string> FedVariables(const ProgramDesc& program);

}  // namespace millrace
