#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// Appends a host-readable tensor (HostView) with its LoD, if any, in the format of Paddle's variable files.
///
/// Format (Paddle's SerializeToStream), little endian: uint32 version 0; uint64 number of LoD levels, each a uint64
/// byte count and that many bytes of uint64 offsets; uint32 version 0; int32 size of a TensorDesc message, the message;
/// the values in row-major order. A combined file contains several tensors in the order of their sorted names.
void AppendLoDTensor(const Tensor& tensor, std::string* bytes);
/// Appends only the part before the values.
void AppendLoDTensorHead(const Tensor& tensor, std::string* bytes);

/// Reads one tensor from the start of `bytes` into `tensor`, on any device, and returns its size in bytes.
///
/// Never reads past the end, and allocates no more than `bytes` can fill. Fails with kBadData, naming `origin` and the
/// byte offset, for a truncated tensor, an unknown version or type, or a wrong size; otherwise with the device's
/// failure. `lod` receives the LoD, of which one level is supported; null: it is skipped.
Result<size_t> ReadLoDTensor(std::string_view bytes, std::string_view origin, Tensor* tensor,
                             std::vector<uint32_t>* lod = nullptr);

}  // namespace millrace
