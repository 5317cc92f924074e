#pragma once

#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

/// The position of the first NaN or infinite value; -1: none, or the tensor is empty or not of floats.
int64_t FirstNonFinite(const Tensor& tensor);

/// Checks trained values for NaN and infinity: the persistable tensors of `root` that an operator of `program` writes
/// (parameters, optimizer states, running statistics), and the rows of its tables with their state.
///
/// Fails with kBadData, giving for each affected variable the count and the first position. Reads every value once, up
/// to `threads` variables concurrently; no thread may write meanwhile.
Status CheckFiniteVariables(const ProgramDesc& program, const Scope& root, int threads = 1);

}  // namespace millrace
