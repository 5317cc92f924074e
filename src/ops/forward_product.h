#pragma once

#include <string_view>

#include "kernels/gemm.h"
#include "runtime/op_kernel.h"

namespace millrace {

/// `form` (transposes, bias, relu) as a forward kernel multiplies: in the precision of training, or batch-invariant
/// where the frame scores. `right` is the input that is B; empty when no input of the operator is.
GemmSpec ForwardProduct(const KernelContext& context, std::string_view right, GemmSpec form);

}  // namespace millrace
