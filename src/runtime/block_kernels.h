#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "program/op_range.h"
#include "runtime/awaited_inputs.h"
#include "runtime/kernel_state.h"
#include "runtime/op_kernel.h"
#include "runtime/plugin_output_check.h"

namespace millrace {

/// The kernels of one block in one frame, in the order of its operators.
///
/// A frame owns those of block 0; an operator that runs a block (`while`, `conditional_block`) owns those of its own.
/// Refers to the executable, which must outlive it. One thread at a time.
class BlockKernels {
 public:
  /// kInvalidConfig that names block, index and operator when a kernel cannot be made.
  static Result<std::unique_ptr<BlockKernels>> Create(const Executable& executable, int block, Scope& scope,
                                                      const FrameOptions& options);

  /// Runs every operator once. A failure names block, index, operator and its first output.
  Status Run(const RunContext& context) { return Run(context, {0, kernels_.size()}); }
  /// Runs a part of them.
  Status Run(const RunContext& context, OpRange ops);

  /// Appends the kernels that have a state, in the order of their operators, those of blocks that operators run
  /// included.
  void CollectStates(std::vector<NamedKernelState>* states) const;
  /// The operator whose failure the last Run returned.
  size_t failed_op() const { return failed_op_; }

  /// From now on, measures each operator.
  void EnableProfile();
  /// Nanoseconds that each operator took in all runs; empty without EnableProfile.
  const std::vector<int64_t>& nanoseconds() const { return nanoseconds_; }

 private:
  BlockKernels(const Executable& executable, int block) : executable_(&executable), block_(block) {}

  const Executable* executable_;
  int block_;
  size_t failed_op_ = 0;
  std::vector<std::unique_ptr<OpKernel>> kernels_;
  std::vector<AwaitedInputs> awaited_;            ///< of each operator
  std::vector<PluginOutputCheck> output_checks_;  ///< of each operator
  std::vector<int64_t> nanoseconds_;
};

}  // namespace millrace
