#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "program/op_registry.h"

namespace millrace {

/// Paddle's op_role attribute: which part of training an operator belongs to.
enum class OpRole : int64_t { kForward = 0, kBackward = 1, kOptimize = 2, kLoss = 256, kLossGradient = 257 };

/// True for operators that compute the prediction and the loss: what an author wrote, without gradients and updates.
/// Operators without an op_role count as such.
bool IsAuthored(const OpDesc& op);

/// Appends operators to a block and declares what they write, with the shapes that the operators infer.
///
/// Views the block and the registry, which must outlive it. One thread.
class BlockBuilder {
 public:
  /// kInvalidConfig when a variable that is already declared has more axes than Dims holds.
  static Result<BlockBuilder> Create(BlockDesc& block, const OpRegistry& registry);

  /// Declares a variable; a second declaration of a name is our bug (CHECK). The reference lasts until the next one.
  VarDesc& Declare(std::string_view name, const VarMeta& meta);
  /// Appends an operator and declares its outputs. An unknown operator (with the nearest name) or a shape that does
  /// not fit is kInvalidConfig; the block is then unchanged.
  Status Append(OpDesc op, OpRole role);

  /// Makes variables of blocks around this one known, which its operators read and write. Names that it knows stay.
  void See(const VarMetas& outer) { vars_.insert(outer.begin(), outer.end()); }

  const VarMetas& vars() const { return vars_; }
  bool Has(std::string_view name) const { return vars_.contains(name); }
  const OpRegistry& registry() const { return *registry_; }
  void set_registry(const OpRegistry& registry) { registry_ = &registry; }
  BlockDesc& block() { return *block_; }

 private:
  BlockBuilder(BlockDesc& block, const OpRegistry& registry) : block_(&block), registry_(&registry) {}

  VarDesc& AddVar(std::string_view name, const VarMeta& meta);

  BlockDesc* block_;
  const OpRegistry* registry_;
  VarMetas vars_;
};

/// Visits the names of all variables that are bound.
template <class Visit>
void ForEachArgument(const google::protobuf::RepeatedPtrField<OpDesc::Var>& bindings, const Visit& visit) {
  for (const OpDesc::Var& binding : bindings) {
    for (const std::string& name : binding.arguments()) {
      if (name != kEmptyVar) visit(name);
    }
  }
}

}  // namespace millrace
