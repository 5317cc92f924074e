#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_batch.h"
#include "runtime/block_kernels.h"
#include "runtime/executable.h"
#include "runtime/op_kernel.h"

namespace millrace {

/// One worker's copy of a program: kernels with their variables resolved, intermediates in a scope of its own.
///
/// Made once a worker, used for every batch by that worker alone. Refers to the executable and to the root scope.
class Frame {
 public:
  /// Persistable variables must exist in `root` (run the startup program first); a missing one is an error by name.
  /// Other variables are made here, but for those that `root` has already. Variables named like a slot of `schema` are
  /// bound to the batch; `schema` may be null for a startup program. kInvalidConfig when the variables of `root` lie on
  /// another device than the one that the program was compiled for.
  static Result<std::unique_ptr<Frame>> Create(const Executable& executable, const SlotSchema* schema, Scope& root,
                                               const FrameOptions& options);

  /// Runs every operator on the batch, whose columns are viewed on the CPU and copied to other devices; it must outlive
  /// the next Run or the reading of this frame's variables. A failure names the operator, its index and its first
  /// output. What these calls let the device do is done when they return.
  Status Run(const RunContext& context);
  /// Run in steps, for operators that threads of their own run: Bind, then every range once, in order; a thread sees
  /// what the one before it did (a lock lies between them).
  Status Bind(const RunContext& context);
  Status RunOps(const RunContext& context, OpRange ops);

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
  size_t op_count() const { return executable_->ops().size(); }
  /// Type of the i-th operator.
  const std::string& op_type(size_t i) const { return executable_->ops()[i].type(); }

 private:
  struct Binding {
    SlotId slot;
    Tensor* tensor;
    Dims dims;   ///< of dense slots
    DType type;  ///< of the variable
    /// What of the batch is then copied to `tensor`; null where the host reads that itself.
    std::unique_ptr<Tensor> on_host;
  };
  Frame(const Executable& executable, Scope& root)
      : executable_(&executable), scope_(&root), stream_(executable.device().MakeStream()) {}
  Status BindColumns(const RunContext& context);
  Status BindColumn(const RunContext& context, Binding& binding);
  /// `queued`, or when it is ok what the device says once it has done everything.
  Status AfterDevice(Status queued);

  const Executable* executable_;
  Scope scope_;
  std::unique_ptr<Stream> stream_;  ///< null on the CPU
  std::vector<Binding> bindings_;
  std::unique_ptr<BlockKernels> block_;  ///< block 0; operators that run others own theirs
};

/// Runs a startup program once in `root`: makes and fills its persistable variables. `readers` and `tables` are as in
/// FrameOptions. A stop request ends it: between two operators, in a `while`, or in the middle of a large tensor:
/// kCancelled.
Status RunStartup(const ProgramDesc& program, const OpRegistry& registry, Scope& root, uint64_t seed,
                  const ReaderRegistry* readers = nullptr, const TableFactory* tables = nullptr,
                  std::stop_token stop = {});

}  // namespace millrace
