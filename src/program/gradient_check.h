#pragma once

#include "core/status.h"
#include "program/op_registry.h"

namespace millrace {

/// Checks a gradient operator of a program as strictly as its forward operator would be: attributes, inputs, and that
/// each OUT@GRAD has the sizes that the forward operator gives OUT, as far as they are known before a batch is there.
/// kInvalidConfig that begins with the operator's type. Other operators pass.
Status CheckGradient(const OpView& gradient, const OpRegistry& registry, const VarMetas& vars);

}  // namespace millrace
