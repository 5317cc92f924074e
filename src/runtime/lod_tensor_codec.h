#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// Appends a tensor that the host reads (HostView), with its LoD if it has one, in the form of Paddle's variable files.
///
/// Format (Paddle's SerializeToStream), little endian: uint32 version 0; uint64 number of LoD levels, each a uint64
/// byte count and that many bytes of uint64 offsets; uint32 version 0; int32 size of a TensorDesc message, the
/// message; the values in row-major order. A combined file holds several such tensors one after another, in the order
/// of their sorted names.
void AppendLoDTensor(const Tensor& tensor, std::string* bytes);
/// What stands before the values.
void AppendLoDTensorHead(const Tensor& tensor, std::string* bytes);

/// Reads one tensor from the start of `bytes` into `tensor`, on whatever device it lies, and returns how many bytes it
/// took.
///
/// Never reads past the end and allocates no more than the bytes at hand can fill. Errors are kBadData and name
/// `origin` and the byte offset: a truncated file, an unknown version or type, a size that does not fit. The LoD goes
/// into `lod`, of which one level is supported; without `lod`, it is passed over.
Result<size_t> ReadLoDTensor(std::string_view bytes, std::string_view origin, Tensor* tensor,
                             std::vector<uint32_t>* lod = nullptr);

}  // namespace millrace
