#pragma once

#include "program/op_registry.h"

namespace millrace {

/// True for the types that a tensor can hold.
bool IsTensorType(VarType::Type type);
/// The tensor type of a program's type; kFloat32 for types that are no tensor's.
DType ToDType(VarType::Type type);
VarType::Type ToVarType(DType type);

/// The variable of block 0 of this name; null when it is not declared.
const VarDesc* FindVar(const ProgramDesc& program, std::string_view name);

/// No click, and a click: a prediction of so many columns is the last one. More columns are classes.
constexpr int64_t kClickClasses = 2;

/// How many classes a prediction of this name has, the columns of [batch, columns]; 0 where these are kClickClasses or
/// fewer, and where block 0 has no such tensor.
int64_t ClassesOf(const ProgramDesc& program, std::string_view name);

/// False for sizes of which no machine holds a tensor: with the others, kernels and shape rules may multiply.
bool AreCountable(const Dims& dims);

/// What a program says of a variable; kInvalidConfig for a tensor of more axes than Dims holds, or of sizes that are
/// not countable.
Result<VarMeta> ToMeta(const VarDesc& var);

}  // namespace millrace
