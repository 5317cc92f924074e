#pragma once

#include "program/op_list.h"
#include "program/op_registry.h"

namespace millrace {

/// Operators of click models as programs see them: names, arguments, shapes and gradients, without kernels. For tests
/// of what rewrites programs.
OpRegistry StubOps();

/// One operator a line: `type(X=a,b Y=c -> Out=d)`, parameters that are not bound left out.
std::string Show(const OpDesc& op);
std::string Show(const OpList& ops);

}  // namespace millrace
