#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "framework.pb.h"
#include "program/op_registry.h"

namespace millrace {

/// `program` without gradients and updates, with training-dependent operators (dropout, batch_norm) in prediction mode.
ProgramDesc ForwardProgram(const ProgramDesc& program, const OpRegistry& registry);

/// `program` without inputs read only by gradients (OpBuilder::InputForGradient): their sources, often labels, are not
/// needed to predict, although Paddle's operators require them.
ProgramDesc WithoutInputsForGradients(const ProgramDesc& program, const OpRegistry& registry);

/// The part of block 0 of `program` that computes `targets`, with the variables of `given` as inputs.
///
/// Keeps the order of operators, keeps operators with inner blocks (while, conditional_block) completely, and declares
/// only used variables. A `print` becomes an assign; operators in inner blocks that do not write a variable are
/// removed. A softmax_with_cross_entropy of which only the probabilities are needed becomes a softmax, so no label is
/// needed. Fails with kInvalidConfig for a target that no operator computes.
Result<ProgramDesc> PruneProgram(const ProgramDesc& program, const std::vector<std::string>& targets,
                                 const std::vector<std::string>& given);

/// Variables that must be fed: read by `program` before being written, and not persistable. In order of declaration.
std::vector<std::string> FedVariables(const ProgramDesc& program);

}  // namespace millrace
