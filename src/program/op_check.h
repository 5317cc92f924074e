#pragma once

#include <string>
#include <vector>

#include "program/op_registry.h"

namespace millrace {

/// Checks one operator by itself, before its shapes: that it is registered, what is bound to it, its attributes. Adds a
/// message for each mistake to `problems`, which begins with `where` and gives the nearest name.
void CheckOp(const std::string& where, const OpDesc& op, const VarMetas& vars, const OpRegistry& registry,
             std::vector<std::string>* problems);

/// Refuses a program that comes with a saved model and does more than compute: kInvalidConfig with a line for each
/// operator, of any block and whether it would run or not, that has an effect (OpInfo::effect).
Status CheckWithoutEffects(const ProgramDesc& program, const OpRegistry& registry);

}  // namespace millrace
