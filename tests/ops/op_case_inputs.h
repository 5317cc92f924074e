#pragma once

#include <vector>

#include "core/rng.h"
#include "ops/op_cases.h"
#include "ops/registry.h"

namespace millrace {

/// The operator of a case, bound to the case's variables.
OpDesc ForwardOp(const OpCase& c);
/// The operators that the registry makes for the gradients of its objectives by its differentiable inputs.
std::vector<OpDesc> GradientOps(const OpCase& c);
/// Whether the case's gradient by an input is looked at.
bool IsWanted(const CaseInput& input);
VarMetas InputMetas(const OpCase& c);
/// A value such as `draw` says.
float DrawFloat(Draw draw, Rng& rng);
/// Fills an input for a batch of `rows` in every session alike.
void Fill(const CaseInput& input, int64_t rows, Rng& rng, const std::vector<OpSession*>& sessions);

}  // namespace millrace
