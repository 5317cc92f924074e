#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework.pb.h"
#include "framework/block_kernels.h"
#include "framework/op_kernel.h"
#include "framework/op_registry.h"
#include "framework/section_cut.h"
#include "framework/slot_batch.h"

namespace millrace {

struct CompileOptions {
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
};

/// A program that was checked, pruned and fused: what all workers share.
///
/// Immutable after Compile; thread-safe. Refers to the registry, which must outlive it.
class Executable {
 public:
  /// Checks block 0 of `program` and the blocks that its operators run (`while`, `conditional_block`): every operator
  /// registered, arguments bound, shapes consistent. Then prunes and fuses, block by block.
  /// All mistakes come back in one kInvalidConfig, a line each: block, index, operator, variable, nearest name.
  static Result<std::unique_ptr<const Executable>> Compile(const ProgramDesc& program, const OpRegistry& registry,
                                                           const CompileOptions& options);

  /// The program as it runs.
  const ProgramDesc& program() const { return program_; }
  const std::vector<OpDesc>& ops() const { return ops(0); }
  /// The operators of a block that runs; a block that nothing runs has none.
  const std::vector<OpDesc>& ops(int block) const { return blocks_.at(static_cast<size_t>(block)); }
  int block_count() const { return static_cast<int>(blocks_.size()); }
  /// The variables of all these blocks, each with a name of its own (framework/block_names.h).
  const VarMetas& vars() const { return vars_; }
  const OpRegistry& registry() const { return *registry_; }
  /// By CompileOptions::parts; empty without them.
  const std::vector<OpRange>& parts() const { return parts_; }
  /// True when the first `count` operators of block 0 leave nothing behind when a run ends with them: none of them
  /// updates a parameter or writes a persistable variable. Kernels' states are not looked at: Frame::states() has them.
  bool LeavesNoTrace(size_t count) const;
  /// The same of a run that a stop ends within a `while`: of all operators as far as the last loop.
  bool StopsWithoutTrace() const;

 private:
  Executable() = default;
  bool HoldsLoop(const OpDesc& op) const;
  bool WritesForGood(const OpDesc& op) const;

  ProgramDesc program_;
  std::vector<std::vector<OpDesc>> blocks_;  ///< by number in the program
  VarMetas vars_;
  std::vector<OpRange> parts_;
  const OpRegistry* registry_ = nullptr;
};

/// One worker's copy of a program: kernels with their variables resolved, intermediates in a scope of its own.
///
/// Made once a worker, used for every batch by that worker alone. Refers to the executable and to the root scope.
class Frame {
 public:
  /// Persistable variables must exist in `root` (run the startup program first); a missing one is an error by name.
  /// Other variables are made here, but for those that `root` has already. Variables named like a slot of `schema` are
  /// bound to the batch; `schema` may be null for a startup program.
  static Result<std::unique_ptr<Frame>> Create(const Executable& executable, const SlotSchema* schema, Scope& root,
                                               const FrameOptions& options);

  /// Runs every operator on the batch, which must outlive the next Run or the reading of this frame's variables.
  /// A failure names the operator, its index and its first output.
  Status Run(const RunContext& context);
  /// Run in steps, for operators that threads of their own run: Bind, then every range once, in order; a thread sees
  /// what the one before it did (a lock lies between them).
  Status Bind(const RunContext& context);
  Status RunOps(const RunContext& context, OpRange ops) { return block_->Run(context, ops); }

  /// A variable of this frame or of the root scope; null when there is none.
  const Variable* Find(std::string_view name) const { return scope_.Find(name); }
  Scope& scope() { return scope_; }

  /// Nanoseconds that each operator took in all runs, when profiling was asked for; empty otherwise.
  const std::vector<int64_t>& op_nanoseconds() const { return block_->nanoseconds(); }
  void EnableProfile() { block_->EnableProfile(); }
  /// The kernels that have a state, those of its blocks too; a program that is the same has them in the same order.
  std::vector<NamedKernelState> states() const {
    std::vector<NamedKernelState> states;
    block_->CollectStates(&states);
    return states;
  }
  /// The operator of block 0 whose failure the last Run returned.
  size_t failed_op() const { return block_->failed_op(); }
  /// Type of the i-th operator.
  const std::string& op_type(size_t i) const { return executable_->ops()[i].type(); }

 private:
  struct Binding {
    SlotId slot;
    Tensor* tensor;
    Dims dims;   ///< of dense slots
    DType type;  ///< of the variable
  };
  Frame(const Executable& executable, Scope& root) : executable_(&executable), scope_(&root) {}

  const Executable* executable_;
  Scope scope_;
  std::vector<Binding> bindings_;
  std::unique_ptr<BlockKernels> block_;  ///< block 0; operators that run others own theirs
};

/// Runs a startup program once in `root`: makes and fills its persistable variables. `readers` are the formats of the
/// files that it opens. A stop request ends a `while` in it: kCancelled.
Status RunStartup(const ProgramDesc& program, const OpRegistry& registry, Scope& root, uint64_t seed,
                  const ReaderRegistry* readers = nullptr, std::stop_token stop = {});

/// The block that an operator runs; -1 for all but control flow.
int BlockOf(const OpDesc& op);

/// The operators of block 0 as the seed's worker lists them: "op[0]->Type(): lookup_table", a line each.
std::string PrintOps(const std::vector<OpDesc>& ops);

}  // namespace millrace
