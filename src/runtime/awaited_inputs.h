#pragma once

#include <string>
#include <vector>

#include "program/op_registry.h"
#include "runtime/scope.h"

namespace millrace {

class Executable;

/// The tensors that an operator reads and that nothing has written yet. An operator may leave an output unwritten (a
/// branch that did not run), and kernels take what they read as it is.
class AwaitedInputs {
 public:
  /// Watches no input that is not read, and nothing for an operator that takes unwritten inputs (OpInfo). Operator and
  /// scope must outlive the object.
  AwaitedInputs(const OpView& op, const Scope& scope);

  /// True when everything was written once: no tensor loses its value again, so a warm batch asks no more than this.
  bool empty() const { return inputs_.empty(); }
  /// Forgets what is written by now. kInvalidConfig that names the first variable that is not, and the operator of
  /// `executable` that should have written it.
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
