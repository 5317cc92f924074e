#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/checksummed_file.h"
#include "core/long_work.h"
#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// 128-bit XXH3 of each block of kTensorBlock bytes of a tensor's values; the last block can be shorter.
using BlockSums = std::vector<std::array<uint64_t, 2>>;

constexpr size_t kTensorBlock = 4096;
/// A tensor with at least this many bytes of values has separate files in a checkpoint, so only changes need to be
/// saved.
constexpr size_t kLargeTensor = size_t{32} << 20;

// Tensors below must be host-readable (HostView), and no thread may write them meanwhile.

/// Reads the whole tensor: about 0.1 s per gigabyte and thread. Fails with kUnavailable without memory.
Result<BlockSums> SumBlocks(const Tensor& tensor, int threads);
/// Ascending numbers of the blocks whose sums differ; both tensors have the same size.
std::vector<uint64_t> ChangedBlocks(const BlockSums& before, const BlockSums& now);

/// Writes a tensor without LoD in the format of Paddle's variable files (AppendLoDTensor), without copying it. Fails
/// like ChecksummedFile.
Result<FileSum> WriteTensorFile(const Tensor& tensor, const std::string& path, const LongWork& work);
/// Writes only `blocks` of a tensor (docs/formats/checkpoint.md). Fails like ChecksummedFile.
Result<FileSum> WriteBlocksFile(const Tensor& tensor, const std::vector<uint64_t>& blocks, const std::string& path,
                                const LongWork& work);
/// Approximate size of WriteBlocksFile's output.
inline uint64_t BytesOfBlocks(uint64_t blocks) { return blocks * (kTensorBlock + sizeof(uint64_t)); }

/// Replaces blocks in `values`, all values of a tensor, by those of a file. Fails with kBadData for a truncated file or
/// one of a tensor of another size, kNotFound or kIo if it cannot be read, kCancelled after a stop request; `values`
/// are invalid then.
Status ReadBlocksFile(const std::string& path, std::span<char> values, const LongWork& work);

}  // namespace millrace
