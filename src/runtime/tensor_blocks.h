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

/// XXH3 of 128 bits of each block of a tensor's values, kTensorBlock bytes a block, the last one shorter.
using BlockSums = std::vector<std::array<uint64_t, 2>>;

constexpr size_t kTensorBlock = 4096;
/// A tensor of so many bytes of values and more has files of its own in a checkpoint, where what changed is enough.
constexpr size_t kLargeTensor = size_t{32} << 20;

// Tensors here are those that the host reads (HostView), and that nobody writes meanwhile.

/// Reads all of the tensor: some 0.1 s a gigabyte and thread.
Result<BlockSums> SumBlocks(const Tensor& tensor, int threads);
/// Numbers of blocks, rising, whose sums differ; both are of tensors of one size.
std::vector<uint64_t> ChangedBlocks(const BlockSums& before, const BlockSums& now);

/// Writes a tensor in the form of Paddle's variable files (AppendLoDTensor), without a copy of it. The tensor has no
/// LoD. Otherwise as ChecksummedFile.
Result<FileSum> WriteTensorFile(const Tensor& tensor, const std::string& path, const LongWork& work);
/// Writes `blocks` of a tensor alone (docs/formats/checkpoint.md). Otherwise as ChecksummedFile.
Result<FileSum> WriteBlocksFile(const Tensor& tensor, const std::vector<uint64_t>& blocks, const std::string& path,
                                const LongWork& work);
/// About what WriteBlocksFile writes of so many blocks.
inline uint64_t BytesOfBlocks(uint64_t blocks) { return blocks * (kTensorBlock + sizeof(uint64_t)); }

/// Puts the blocks of a file in place of those that `values`, all of a tensor, has. kBadData for a file that is cut
/// off, or of a tensor of another size; `values` are of no use then.
Status ReadBlocksFile(const std::string& path, std::span<char> values, const LongWork& work);

}  // namespace millrace
