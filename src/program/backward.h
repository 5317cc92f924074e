#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/name_numbers.h"
#include "core/status.h"
#include "program/op_registry.h"

namespace millrace {

class ProgramDesc;

/// A parameter and the variable that holds its gradient.
struct ParamGrad {
  std::string param;
  std::string grad;
};

/// Appends the gradient operators of `loss` to the block of that index, that of the operator that makes it, and
/// declares the variables they write there; an index that the program does not have is kInvalidConfig. Of the variables
/// of blocks around it, parameters get a gradient, and others as far as this block itself computes them.
///
/// Walks the operators that lead to the loss in reverse and asks each for its gradient (OpInfo::grad), after a
/// fill_constant 1 for the loss itself. A variable that several operators read gets a `sum` of its parts, named
/// NAME@GRAD@RENAME@block0@vJ as Paddle names them. What is marked stop_gradient, holds integers or leads to no
/// parameter gets no gradient: operators see "@EMPTY@" there, or are left out. Returns the trainable parameters that
/// have a gradient (is_parameter, not stop_gradient), in the order of their declaration. Mistakes (an unknown loss, an
/// operator on the way that has no gradient, a variable that is written over before its gradient reads it, a loss that
/// depends on no parameter) come back together. A stop request ends it between two operators: kCancelled, with a
/// program of no use.
Result<std::vector<ParamGrad>> AppendBackward(ProgramDesc& program, std::string_view loss, const OpRegistry& registry,
                                              int block_index, const std::stop_token& stop = {});

/// The gradient operators of `ops`, which write the gradients of the variables `wanted` from those of `arriving`. What
/// an operator without a gradient writes counts as constant. `metas` describes all variables of `ops`.
Result<std::vector<OpDesc>> GradientsOf(const std::vector<OpDesc>& ops, const VarMetas& metas, NameNumbers arriving,
                                        const std::vector<std::string>& wanted, const OpRegistry& registry);

}  // namespace millrace
