#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "core/status.h"
#include "program/op_registry.h"

namespace millrace {

class BlockKernels;

/// Kernel state saved in checkpoints: a kernel with such state derives from this class and OpKernel. Its other data
/// starts new in a resumed run. Called between batches, by one thread at a time.
class KernelState {
 public:
  virtual ~KernelState() = default;
  /// Appends the input of LoadState; nothing for state that intentionally starts new. It is stored in the checkpoint's
  /// manifest, so keep it small: positions and sums, not data. Fails if the kernel cannot save its state.
  virtual Status SaveState(std::string* bytes) = 0;
  /// Restores the state of SaveState in a new kernel of the same operator with the same attributes. Fails with
  /// kCancelled soon after a stop request, otherwise with the kernel's failure, such as kBadData for unsuitable bytes.
  virtual Status LoadState(std::string_view bytes, const std::stop_token& stop) = 0;
};

/// A stateful kernel of a frame. The pointers belong to the executable and the frame.
struct NamedKernelState {
  std::string name;    ///< `my_op "c"` with its first output; `my_op "c" 2` for the second with this type and output
  std::string output;  ///< the variable; empty if there is none
  const OpDesc* op = nullptr;
  const OpInfo* info = nullptr;
  KernelState* state = nullptr;
};

/// Base of kernels that run the kernels of a block, so that inner states are found.
class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  virtual const BlockKernels& block() const = 0;
};

}  // namespace millrace
