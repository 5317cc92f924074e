#pragma once

#include <string>
#include <vector>

#include "framework/op_registry.h"
#include "framework/scope.h"

namespace millrace {

/// True when a tensor that is there has the type and the sizes that the program says; kernels rely on it. True for what
/// holds nothing yet, or is no tensor.
bool FitsMeta(const Variable& variable, const VarMeta& meta);

/// `"NAME" float32 [2, 3]`, for messages.
std::string ShownMeta(std::string_view name, DType dtype, const Dims& dims);

/// What an operator of a plugin gives, held to what its shape rule promised: operators behind it rely on that.
class GivenOutputs {
 public:
  GivenOutputs() = default;
  /// Watches nothing for an operator of Millrace's own. Scope and metas must outlive the object.
  GivenOutputs(const OpView& op, const Scope& scope, const VarMetas& metas);

  bool empty() const { return outputs_.empty(); }
  /// kInvalidConfig that names the plugin, the variable, and both shapes.
  Status Check() const;

 private:
  struct Output {
    std::string name;
    const Variable* variable = nullptr;
    const VarMeta* meta = nullptr;
  };
  std::string plugin_;
  std::vector<Output> outputs_;
};

}  // namespace millrace
