#pragma once

#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

/// The AUC of the counts that a scope has for an `auc` operator that forgets no batch (CountsAllBatches). The counts
/// may be the sum of several workers', and lie on any device. kInternal where the scope does not have them.
Result<double> AucOfCounts(const OpDesc& op, const Scope& scope);

}  // namespace millrace
