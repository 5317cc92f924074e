#pragma once

#include <optional>

#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

/// The value of an `auc` operator that forgets no batch for the counts of a scope, as where those of several workers
/// were added up. nullopt for another operator, and where the scope does not have the counts.
std::optional<double> AucOfCounts(const OpDesc& op, const Scope& scope);

}  // namespace millrace
