#pragma once

#include "runtime/device.h"
#include "runtime/tensor.h"

namespace millrace {

// All copies between a device's memory and the host's. The host accesses tensors on other devices only through these
// functions, which fail with the device's failure.

/// Copies type, sizes, LoD and values of host-readable `from` to `to`, another tensor on any device; without a value,
/// does nothing. With a stream of that device, the copy is queued there, and `from` must stay valid until it is done.
/// Fails like the device's copy; throws NoMemory.
Status CopyFromHost(const Tensor& from, Tensor* to, Stream* stream = nullptr);

/// Copies a tensor on any device to a host-readable one. Fails like the device's copy; throws NoMemory.
Status CopyToHost(const Tensor& from, Tensor* to);

/// Makes tensors readable on the host, one at a time. Reuses its memory. One thread.
class HostView {
 public:
  /// The tensor itself if the host can read it, otherwise a copy, which the next call overwrites. Fails with the
  /// device's failure. Throws NoMemory.
  Result<const Tensor*> Of(const Tensor& tensor) {
    if (tensor.is_on_host()) return &tensor;
    return CopyOf(tensor);
  }

 private:
  Result<const Tensor*> CopyOf(const Tensor& tensor);

  Tensor copy_;
};

}  // namespace millrace
