#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "program/op_range.h"
#include "runtime/kernel_state.h"
#include "runtime/op_kernel.h"
#include "runtime/plugin_output_check.h"
#include "runtime/unwritten_inputs.h"

namespace millrace {

/// The kernels of one block in one frame, in operator order.
///
/// A frame owns those of block 0; an operator that runs a block (`while`, `conditional_block`) owns those of its block.
/// Refers to the executable, which must outlive it. One thread at a time.
class BlockKernels {
 public:
  /// Fails with kInvalidConfig, naming block, index and operator, if a kernel rejects its operator; kUnavailable
  /// without memory.
  static Result<std::unique_ptr<BlockKernels>> Create(const Executable& executable, int block, Scope& scope,
                                                      const FrameOptions& options);

  /// Runs every operator once. Fails with the operator's failure, naming block, index, operator and its first output:
  /// kInvalidConfig for an unwritten input, an unsuitable variable or a plugin's wrong output, kUnavailable without
  /// memory.
  Status Run(const RunContext& context) { return Run(context, {0, kernels_.size()}); }
  /// Runs the operators in `ops`; fails likewise.
  Status Run(const RunContext& context, OpRange ops);

  /// Appends the kernels with a state in operator order, including those of inner blocks.
  void CollectStates(std::vector<NamedKernelState>* states) const;
  /// Index of the operator whose failure the last Run returned.
  size_t failed_op() const { return failed_op_; }

  /// Starts measuring each operator.
  void EnableProfile();
  /// Total nanoseconds per operator; empty without EnableProfile.
  const std::vector<int64_t>& nanoseconds() const { return nanoseconds_; }

 private:
  BlockKernels(const Executable& executable, int block) : executable_(&executable), block_(block) {}

  const Executable* executable_;
  int block_;
  size_t failed_op_ = 0;
  std::vector<std::unique_ptr<OpKernel>> kernels_;
  std::vector<UnwrittenInputs> awaited_;          ///< of each operator
  std::vector<PluginOutputCheck> output_checks_;  ///< of each operator
  std::vector<int64_t> nanoseconds_;
};

}  // namespace millrace
