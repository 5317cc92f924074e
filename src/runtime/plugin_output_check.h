#pragma once

#include <string>
#include <vector>

#include "program/op_registry.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

/// True when a tensor that is there has the type and the sizes that the program says; kernels rely on it. True for what
/// holds nothing yet, or is no tensor.
bool FitsMeta(const Variable& variable, const VarMeta& meta);

/// `"NAME" float32 [2, 3]`, for messages.
std::string ShownMeta(std::string_view name, DType dtype, const Dims& dims);

/// What an operator of a plugin gives, held to what its shape rule promised: operators behind it rely on that.
class PluginOutputCheck {
 public:
  PluginOutputCheck() = default;
  /// Watches nothing for an operator of Millrace's own. Scope and metas must outlive the object.
  PluginOutputCheck(const OpView& op, const Scope& scope, const VarMetas& metas);

  bool empty() const { return outputs_.empty(); }
  /// kInvalidConfig that names the plugin, the variable, and both shapes. `rows` are those of the batch; 0: there is
  /// none.
  Status Check(int64_t rows) const;

 private:
  struct Bound {
    std::string name;
    const Variable* variable = nullptr;
    const VarMeta* meta = nullptr;
  };
  /// What an input holds; null when it has no axis of rows.
  static const Tensor* RowsOf(const Bound& input);
  Status CheckRows(const Bound& output, int64_t rows) const;

  std::string plugin_;
  std::vector<Bound> outputs_;
  bool checks_rows_ = false;
  std::vector<Bound> inputs_;  ///< tensors whose number of rows the batch decides, as that of an output may be
};

}  // namespace millrace
