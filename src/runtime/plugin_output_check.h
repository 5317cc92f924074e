#pragma once

#include <string>
#include <vector>

#include "program/op_registry.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

/// Whether a tensor has the declared type and sizes, on which kernels rely. True for an empty variable and for other
/// kinds.
bool FitsMeta(const Variable& variable, const VarMeta& meta);

/// `"NAME" float32 [2, 3]`, for messages.
std::string ShownMeta(std::string_view name, DType dtype, const Dims& dims);

/// Checks the outputs of a plugin's operator against its shape rule, because later operators rely on them.
class PluginOutputCheck {
 public:
  PluginOutputCheck() = default;
  /// Does nothing for built-in operators. Scope and metas must outlive the object.
  PluginOutputCheck(const OpView& op, const Scope& scope, const VarMetas& metas);

  bool empty() const { return outputs_.empty(); }
  /// Fails with kInvalidConfig, naming the plugin, the variable and both shapes. `rows` is the batch's row count; 0:
  /// none.
  Status Check(int64_t rows) const;

 private:
  struct Bound {
    std::string name;
    const Variable* variable = nullptr;
    const VarMeta* meta = nullptr;
  };
  /// The tensor of an input; null if it has no row axis.
  static const Tensor* RowsOf(const Bound& input);
  Status CheckRows(const Bound& output, int64_t rows) const;

  std::string plugin_;
  std::vector<Bound> outputs_;
  bool checks_rows_ = false;
  std::vector<Bound> inputs_;  ///< tensors with a row axis set by the batch, which an output can share
};

}  // namespace millrace
