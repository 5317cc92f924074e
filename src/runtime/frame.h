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

/// One worker's instance of a program: kernels with resolved variables, and a scope for intermediates.
///
/// Created once per worker and used only by it. Refers to the executable and to the root scope.
class Frame {
 public:
  /// Persistable variables must exist in `root` (run the startup program first); other variables are created here
  /// unless `root` has them. Variables named like a slot of `schema` are bound to the batch; `schema` can be null for a
  /// startup program. Fails with kInvalidConfig, naming missing, unwritten or mismatched parameters, if `root` is on
  /// another device than the program was compiled for, and like CheckBatchVariables; otherwise like
  /// BlockKernels::Create.
  static Result<std::unique_ptr<Frame>> Create(const Executable& executable, const SlotSchema* schema, Scope& root,
                                               const FrameOptions& options);

  /// Runs every operator on the batch, whose columns are viewed on the CPU and copied to other devices. The batch must
  /// outlive the next Run and any reading of this frame's variables. Work on the device is complete on return. Fails
  /// like BlockKernels::Run, kBadData if the batch does not fit its variables, and with the device's failure.
  Status Run(const RunContext& context);
  /// Run in steps, for operators run by separate threads: Bind, then every range once, in order. A thread must see the
  /// previous one's effects (synchronize with a lock). They fail like Run.
  Status Bind(const RunContext& context);
  Status RunOps(const RunContext& context, OpRange ops);

  /// A variable of this frame or of the root scope; null if there is none.
  const Variable* Find(std::string_view name) const { return scope_.Find(name); }
  Scope& scope() { return scope_; }

  /// Total nanoseconds per operator; empty without profiling.
  const std::vector<int64_t>& op_nanoseconds() const { return block_->nanoseconds(); }
  void EnableProfile() { block_->EnableProfile(); }
  /// The kernels with a state, including those of inner blocks, in the same order for the same program.
  std::vector<NamedKernelState> states() const {
    std::vector<NamedKernelState> states;
    block_->CollectStates(&states);
    return states;
  }
  /// Index of the operator in block 0 whose failure the last Run returned.
  size_t failed_op() const { return block_->failed_op(); }
  size_t op_count() const { return executable_->ops().size(); }
  /// Type of operator i.
  const std::string& op_type(size_t i) const { return executable_->ops()[i].type(); }

 private:
  struct Binding {
    SlotId slot;
    Tensor* tensor;
    Dims dims;   ///< for dense slots
    DType type;  ///< type of the variable
    /// The batch's data to copy to `tensor`; null if the host reads it directly.
    std::unique_ptr<Tensor> on_host;
  };
  Frame(const Executable& executable, Scope& root)
      : executable_(&executable), scope_(&root), stream_(executable.device().MakeStream()) {}
  Status BindColumns(const RunContext& context);
  Status BindColumn(const RunContext& context, Binding& binding);
  /// `queued`, or if ok, the result of synchronizing the device.
  Status AfterDevice(Status queued);

  const Executable* executable_;
  Scope scope_;
  std::unique_ptr<Stream> stream_;  ///< null on the CPU
  std::vector<Binding> bindings_;
  std::unique_ptr<BlockKernels> block_;  ///< block 0; operators that run blocks own theirs
};

/// Runs a startup program once in `root`, which creates and fills its persistable variables. `readers` and `tables`:
/// see FrameOptions. Fails like Executable::Compile, CheckBatchVariables, Frame::Create and Frame::Run; kCancelled
/// after a stop request, also in a `while` or within a large tensor.
Status RunStartup(const ProgramDesc& program, const OpRegistry& registry, Scope& root, uint64_t seed,
                  const ReaderRegistry* readers = nullptr, const TableFactory* tables = nullptr,
                  std::stop_token stop = {});

}  // namespace millrace
