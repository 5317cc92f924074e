#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "core/status.h"
#include "program/op_registry.h"

namespace millrace {

class BlockKernels;

/// The state of a kernel that checkpoints hold: a kernel that has one derives from this beside OpKernel. What else a
/// kernel keeps is as new in a run that goes on. Called between batches, one thread at a time.
class KernelState {
 public:
  virtual ~KernelState() = default;
  /// Appends what LoadState needs; nothing for a state that starts as new by intention. It stands in the checkpoint's
  /// manifest: positions and sums, not the data.
  virtual Status SaveState(std::string* bytes) = 0;
  /// Puts the new kernel of the same operator, with the same attributes, where SaveState stood. kCancelled soon after a
  /// stop request.
  virtual Status LoadState(std::string_view bytes, const std::stop_token& stop) = 0;
};

/// A kernel with a state in a frame. What it points to belongs to the executable and the frame.
struct NamedKernelState {
  std::string name;    ///< `my_op "c"`, by its first output; `my_op "c" 2` for the second one of this type and output
  std::string output;  ///< the variable; empty without one
  const OpDesc* op = nullptr;
  const OpInfo* info = nullptr;
  KernelState* state = nullptr;
};

/// A kernel that runs the kernels of a block derives from this beside OpKernel, so that their states are found.
class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  virtual const BlockKernels& block() const = 0;
};

}  // namespace millrace
