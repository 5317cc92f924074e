#pragma once

#include <string>
#include <vector>

#include "program/op_registry.h"
#include "runtime/scope.h"

namespace millrace {

class Executable;

/// The input tensors of an operator that nothing has written yet. An operator can leave an output unwritten (a branch
/// that did not run), and kernels do not check their inputs.
class UnwrittenInputs {
 public:
  /// Ignores unread inputs, and operators that accept unwritten inputs (OpInfo). Operator and scope must outlive the
  /// object.
  UnwrittenInputs(const OpView& op, const Scope& scope);

  /// True once all inputs were written: a tensor keeps its value, so a warm batch checks only this.
  bool empty() const { return inputs_.empty(); }
  /// Removes the inputs written by now. Fails with kInvalidConfig, naming the first unwritten variable and the operator
  /// of `executable` that should have written it.
  Status Check(const Executable& executable);

 private:
  struct Input {
    const OpDesc::Var* parameter = nullptr;
    const std::string* name = nullptr;
    const Variable* variable = nullptr;
  };
  std::vector<Input> inputs_;
};

}  // namespace millrace
