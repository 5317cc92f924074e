#pragma once

#include "runtime/device.h"
#include "runtime/tensor.h"

namespace millrace {

// The ways between a device's memory and the host's. There is no other: on a device that is not the host, what the
// host reads or writes of a tensor passes here.

/// Type, sizes, LoD and values of `from`, which the host reads, on `to`, which may lie on any device and is another
/// tensor; without a value, `to` stays as it is. With a stream of that device the copy takes its turn there, and `from`
/// must stay until it is done.
Status CopyFromHost(const Tensor& from, Tensor* to, Stream* stream = nullptr);

/// The same of a tensor on any device to one that the host reads.
Status CopyToHost(const Tensor& from, Tensor* to);

/// Shows tensors to the host, one at a time. Keeps its memory from one to the next. One thread.
class HostView {
 public:
  /// The tensor itself where the host reads it, else a copy, which the next call overwrites. Throws NoMemory.
  Result<const Tensor*> Of(const Tensor& tensor) {
    if (tensor.is_on_host()) return &tensor;
    return CopyOf(tensor);
  }

 private:
  Result<const Tensor*> CopyOf(const Tensor& tensor);

  Tensor copy_;
};

}  // namespace millrace
