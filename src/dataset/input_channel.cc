#include "dataset/input_channel.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace millrace {

void InputChannel::Put(InputBlock block) {
  if (block.rows.empty()) return;
  const std::lock_guard lock(mutex_);
  rows_ += block.rows.size();
  blocks_.push_back(std::move(block));
}

void InputChannel::Sort() {
  const std::lock_guard lock(mutex_);
  std::sort(blocks_.begin(), blocks_.end(), [](const InputBlock& a, const InputBlock& b) {
    return std::tie(a.file, a.first_line) < std::tie(b.file, b.first_line);
  });
}

std::vector<RowHandle> InputChannel::TakeAll() {
  std::vector<InputBlock> blocks;
  std::vector<RowHandle> rows;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(blocks_);
    rows.reserve(blocks.size() == 1 ? 0 : rows_);
    rows_ = 0;
  }
  if (blocks.size() == 1) return std::move(blocks[0].rows);
  for (InputBlock& block : blocks) {
    rows.insert(rows.end(), block.rows.begin(), block.rows.end());
    std::vector<RowHandle>().swap(block.rows);
  }
  return rows;
}

std::vector<RowHandle> InputChannel::Copy() const {
  const std::lock_guard lock(mutex_);
  std::vector<RowHandle> rows;
  rows.reserve(rows_);
  for (const InputBlock& block : blocks_) rows.insert(rows.end(), block.rows.begin(), block.rows.end());
  return rows;
}

int64_t InputChannel::rows() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(rows_);
}

size_t InputChannel::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t handles = 0;
  for (const InputBlock& block : blocks_) handles += block.rows.capacity();
  return handles * sizeof(RowHandle);
}

}  // namespace millrace
