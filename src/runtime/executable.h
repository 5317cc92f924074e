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
  /// What the program is to run on; outlives the executable.
  const Device* device = &Cpu();
  bool fuse = true;
  /// Variables that somebody reads after a run; fusion keeps them alive.
  std::vector<std::string> fetches;
  /// Operators whose type contains one of these are left out.
  std::vector<std::string> skip_ops;
  /// Leaves out gradients and optimizers and everything that `fetches` do not need: for evaluation and prediction.
  bool forward_only = false;
  /// The operators of block 0, cut into runs: operators are fused with those of their own section alone, and
  /// Executable::parts() says where each run went. Empty: one run. Not with skip_ops and forward_only.
  std::vector<SectionPart> parts;
  /// Ends Compile between two operators: kCancelled.
  std::stop_token stop;
};

/// Whether CompileOptions::skip_ops leaves the operator out.
bool IsSkipped(const OpDesc& op, const std::vector<std::string>& skip_ops);

/// A program that was checked, pruned and fused: what all workers share.
///
/// Composite operators (program/expansion.h) stay in it as the program has them; their kernels run what they consist
/// of.
///
/// Immutable after Compile; thread-safe. Refers to the registry, which must outlive it.
class Executable {
 public:
  /// Checks block 0 of `program` and the blocks that its operators run (`while`, `conditional_block`): every operator
  /// registered, arguments bound, shapes consistent. Then prunes and fuses, block by block, and chooses the kernels for
  /// the device.
  /// All mistakes come back in one kInvalidConfig, a line each: block, index, operator, variable, nearest name.
  static Result<std::unique_ptr<const Executable>> Compile(const ProgramDesc& program, const OpRegistry& registry,
                                                           const CompileOptions& options);
  /// The same, without a copy of the program: as long as an operator of it is run as it stands, it is kept.
  static Result<std::unique_ptr<const Executable>> Compile(std::shared_ptr<const ProgramDesc> program,
                                                           const OpRegistry& registry, const CompileOptions& options);

  const OpList& ops() const { return ops(0); }
  /// The operators of a block that runs; a block that nothing runs has none.
  const OpList& ops(int block) const { return blocks_.at(static_cast<size_t>(block)); }
  /// A reader as the program declares it, which says more than vars(); null for other variables.
  const VarDesc* FindReader(std::string_view name) const;
  int block_count() const { return static_cast<int>(blocks_.size()); }
  /// The variables of all these blocks, each with a name of its own (program/block_names.h).
  const VarMetas& vars() const { return vars_; }
  const OpRegistry& registry() const { return *registry_; }
  const Device& device() const { return *device_; }
  /// The kernel of an operator of ops(block).
  KernelFactory kernel(int block, size_t op) const { return kernels_[static_cast<size_t>(block)][op]; }
  /// What an operator of ops(block) consists of; null for one that has a kernel of its own.
  const ExpandedOp* FindExpansion(const OpDesc& op) const;
  /// By CompileOptions::parts; empty without them.
  const std::vector<OpRange>& parts() const { return parts_; }
  /// Whether an operator of any block has the variable among its outputs.
  bool Writes(std::string_view variable) const;
  /// True when the first `count` operators of block 0 leave nothing behind when a run ends with them: none of them
  /// updates a parameter or writes a persistable variable. Kernels' states are not looked at: Frame::states() has them.
  bool IsSideEffectFree(size_t count) const;
  /// The same of a run that a stop ends within a `while`: of all operators as far as the last loop.
  bool IsSideEffectFreeWhenStopped() const;

 private:
  Executable() = default;
  Status ChooseKernels();
  bool HoldsLoop(const OpDesc& op) const;
  bool WritesForGood(const OpDesc& op) const;

  std::map<std::string, VarDesc, std::less<>> readers_;
  std::vector<OpList> blocks_;                       ///< by number in the program
  std::vector<std::vector<KernelFactory>> kernels_;  ///< of each operator
  VarMetas vars_;
  std::map<const OpDesc*, ExpandedOp> expansions_;
  std::vector<OpRange> parts_;
  const OpRegistry* registry_ = nullptr;
  const Device* device_ = nullptr;
};

/// Their number, "len(ops)=12", then the operators in their order, a line each: "op[0]->Type(): lookup_table".
std::string PrintOps(const OpList& ops);

}  // namespace millrace
