#pragma once

#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

/// The value of an `auc` operator that forgets no batch (CountsAllBatches) for the counts of a scope, on whatever
/// device they are, as where those of several workers were added up. kInternal where the scope does not have the
/// counts.
Result<double> AucOfCounts(const OpDesc& op, const Scope& scope);

}  // namespace millrace
