#pragma once

#include <string>
#include <vector>

#include "framework/op_registry.h"

namespace millrace {

/// Checks one operator by itself, before its shapes: that it is registered, what is bound to it, its attributes. Adds a
/// message for each mistake to `problems`, which begins with `where` and gives the nearest name.
void CheckOp(const std::string& where, const OpDesc& op, const VarMetas& vars, const OpRegistry& registry,
             std::vector<std::string>* problems);

}  // namespace millrace
