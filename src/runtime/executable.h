#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "framework.pb.h"
#include "program/expansion.h"
#include "program/op_list.h"
#include "program/op_range.h"
#include "program/op_registry.h"
#include "program/section_cut.h"
#include "runtime/device.h"

namespace millrace {

struct CompileOptions {
  /// The device to run on; must outlive the executable.
  const Device* device = &Cpu();
  bool fuse = true;
  /// Variables read after a run; fusion keeps them.
  std::vector<std::string> fetches;
  /// Removes operators whose type contains one of these strings.
  std::vector<std::string> skip_ops;
  /// Removes gradients, optimizers and everything that `fetches` do not need: for evaluation and prediction.
  bool forward_only = false;
  /// Splits block 0 into runs: operators are fused only within their section, and Executable::parts() returns the
  /// position of each run. Empty: one run. Cannot be combined with skip_ops and forward_only.
  std::vector<SectionPart> parts;
  /// Stops Compile between two operators (kCancelled).
  std::stop_token stop;
};

/// Whether CompileOptions::skip_ops removes the operator.
bool IsSkipped(const OpDesc& op, const std::vector<std::string>& skip_ops);

/// A checked, pruned and fused program, shared by all workers.
///
/// Composite operators (program/expansion.h) stay in it as the program has them; their kernels run what they consist
/// of.
///
/// Immutable after Compile; thread-safe. Refers to the registry, which must outlive it.
class Executable {
 public:
  /// Checks block 0 of `program` and the blocks run by its operators (`while`, `conditional_block`): operators are
  /// registered, arguments bound, shapes consistent. Then prunes and fuses each block and selects kernels for the
  /// device. Fails with kInvalidConfig, one line per mistake: block, index, operator, variable, closest name;
  /// kCancelled after a stop request.
  static Result<std::unique_ptr<const Executable>> Compile(const ProgramDesc& program, const OpRegistry& registry,
                                                           const CompileOptions& options);
  /// The same without copying the program, which stays alive while one of its operators is used unchanged.
  static Result<std::unique_ptr<const Executable>> Compile(std::shared_ptr<const ProgramDesc> program,
                                                           const OpRegistry& registry, const CompileOptions& options);

  const OpList& ops() const { return ops(0); }
  /// The operators of a block; empty for a block that never runs.
  const OpList& ops(int block) const { return blocks_.at(static_cast<size_t>(block)); }
  /// The declaration of a reader, which has more details than vars(); null for other variables.
  const VarDesc* FindReader(std::string_view name) const;
  int block_count() const { return static_cast<int>(blocks_.size()); }
  /// The variables of all these blocks under unique names (program/block_names.h).
  const VarMetas& vars() const { return vars_; }
  const OpRegistry& registry() const { return *registry_; }
  const Device& device() const { return *device_; }
  /// The kernel factory of an operator in ops(block).
  KernelFactory kernel(int block, size_t op) const { return kernels_[static_cast<size_t>(block)][op]; }
  /// The operators that an operator of ops(block) expands to; null if it has its own kernel.
  const ExpandedOp* FindExpansion(const OpDesc& op) const;
  /// Positions of CompileOptions::parts; empty without them.
  const std::vector<OpRange>& parts() const { return parts_; }
  /// Whether any operator writes the variable.
  bool Writes(std::string_view variable) const;
  /// Whether a run that ends after the first `count` operators of block 0 has no side effects: they do not update
  /// parameters or write persistable variables. Does not consider kernel states; see Frame::states().
  bool IsSideEffectFree(size_t count) const;
  /// The same for a run stopped within a `while`: considers all operators up to the last loop.
  bool IsSideEffectFreeWhenStopped() const;

 private:
  Executable() = default;
  Status ChooseKernels();
  bool HoldsLoop(const OpDesc& op) const;
  bool WritesForGood(const OpDesc& op) const;

  std::map<std::string, VarDesc, std::less<>> readers_;
  std::vector<OpList> blocks_;                       ///< by block number
  std::vector<std::vector<KernelFactory>> kernels_;  ///< by block and operator
  VarMetas vars_;
  std::map<const OpDesc*, ExpandedOp> expansions_;
  std::vector<OpRange> parts_;
  const OpRegistry* registry_ = nullptr;
  const Device* device_ = nullptr;
};

/// The number of operators, "len(ops)=12", then one line per operator: "op[0]->Type(): lookup_table".
std::string PrintOps(const OpList& ops);

}  // namespace millrace
