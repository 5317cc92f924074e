#pragma once

#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

/// The place of the first value that is NaN or infinite; -1: there is none, or the tensor is empty or of no floats.
int64_t FirstNonFinite(const Tensor& tensor);

/// Looks for NaN and infinite values in what a program trains: the persistable tensors of `root` that an operator of
/// `program` writes (parameters, optimizers' state, running statistics), and the rows of its tables with their state.
///
/// kBadData that names those that hold such values, how many, and the first of each. Reads every value once, of up to
/// `threads` variables at a time; nobody may write meanwhile.
Status CheckFiniteVariables(const ProgramDesc& program, const Scope& root, int threads = 1);

}  // namespace millrace
