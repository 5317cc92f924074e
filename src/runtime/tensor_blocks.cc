#include "runtime/tensor_blocks.h"

#include <algorithm>
#include <cstring>

#include "core/file.h"
#include "core/on_threads.h"
#include "core/xxhash.h"
#include "runtime/lod_tensor_codec.h"

namespace millrace {
namespace {

constexpr char kMagic[8] = {'M', 'R', 'B', 'L', 'O', 'C', 'K', '1'};
constexpr size_t kBlocksATask = 4096;  // 16 MiB

/// The head of a file of blocks.
struct Head {
  char magic[8];
  uint64_t tensor_bytes;
  uint64_t block_bytes;
  uint64_t blocks;
};

size_t CountBlocks(size_t bytes) { return (bytes + kTensorBlock - 1) / kTensorBlock; }

/// Size of block `i` of a tensor with `bytes` bytes.
size_t BytesOfBlock(uint64_t i, size_t bytes) { return std::min(kTensorBlock, bytes - i * kTensorBlock); }

void Write(std::ostream& out, const void* bytes, size_t size) {
  out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

}  // namespace

Result<BlockSums> SumBlocks(const Tensor& tensor, int threads) {
  const auto* const values = static_cast<const char*>(tensor.raw_data());
  const size_t bytes = BytesOf(tensor);
  BlockSums sums(CountBlocks(bytes));
  const size_t tasks = (sums.size() + kBlocksATask - 1) / kBlocksATask;
  MR_TRY(OnThreads(threads, tasks, "looking for what changed of a tensor", [&](size_t task) {
    const size_t end = std::min(sums.size(), (task + 1) * kBlocksATask);
    for (size_t i = task * kBlocksATask; i < end; ++i) {
      const XXH128_hash_t sum = XXH3_128bits(values + i * kTensorBlock, BytesOfBlock(i, bytes));
      sums[i] = {sum.low64, sum.high64};
    }
    return Status::Ok();
  }));
  return sums;
}

std::vector<uint64_t> ChangedBlocks(const BlockSums& before, const BlockSums& now) {
  std::vector<uint64_t> changed;
  for (size_t i = 0; i < now.size(); ++i) {
    if (before[i] != now[i]) changed.push_back(i);
  }
  return changed;
}

Result<FileSum> WriteTensorFile(const Tensor& tensor, const std::string& path, const LongWork& work) {
  MR_ASSIGN(const auto file, ChecksummedFile::Create(path, work));
  std::string head;
  AppendLoDTensorHead(tensor, &head);
  Write(file->stream(), head.data(), head.size());
  Write(file->stream(), tensor.raw_data(), BytesOf(tensor));
  return file->Finish();
}

Result<FileSum> WriteBlocksFile(const Tensor& tensor, const std::vector<uint64_t>& blocks, const std::string& path,
                                const LongWork& work) {
  const auto* const values = static_cast<const char*>(tensor.raw_data());
  Head head{{}, BytesOf(tensor), kTensorBlock, blocks.size()};
  std::copy_n(kMagic, sizeof(kMagic), head.magic);
  MR_ASSIGN(const auto file, ChecksummedFile::Create(path, work));
  Write(file->stream(), &head, sizeof(head));
  for (const uint64_t i : blocks) {
    Write(file->stream(), &i, sizeof(i));
    Write(file->stream(), values + i * kTensorBlock, BytesOfBlock(i, head.tensor_bytes));
  }
  return file->Finish();
}

Status ReadBlocksFile(const std::string& path, std::span<char> values, const LongWork& work) {
  MR_ASSIGN(const std::string bytes, ReadFile(path, work.stop));
  MR_TRY(work.Done(bytes.size(), "reading \"" + path + "\""));
  const auto broken = [&path](const std::string& what) { return BadData("\"" + path + "\" is damaged: " + what); };
  Head head;
  if (bytes.size() < sizeof(head)) return broken("it ends within its head");
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (!std::equal(kMagic, kMagic + sizeof(kMagic), head.magic) || head.block_bytes != kTensorBlock) {
    return broken("it does not begin as a file of blocks");
  }
  if (head.tensor_bytes != values.size()) {
    return broken("it is of a tensor of " + std::to_string(head.tensor_bytes) + " bytes, and this one has " +
                  std::to_string(values.size()));
  }
  size_t at = sizeof(head);
  for (uint64_t k = 0; k < head.blocks; ++k) {
    uint64_t i = 0;
    if (bytes.size() - at < sizeof(i)) return broken("it ends within block " + std::to_string(k));
    std::memcpy(&i, bytes.data() + at, sizeof(i));
    at += sizeof(i);
    if (i >= CountBlocks(values.size())) return broken("the tensor has no block " + std::to_string(i));
    const size_t size = BytesOfBlock(i, values.size());
    if (bytes.size() - at < size) return broken("it ends within block " + std::to_string(k));
    std::memcpy(values.data() + i * kTensorBlock, bytes.data() + at, size);
    at += size;
  }
  if (at != bytes.size()) return broken("bytes follow its last block");
  return Status::Ok();
}

}  // namespace millrace
