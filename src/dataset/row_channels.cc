#include "dataset/row_channels.h"

#include <glog/logging.h>

#include <algorithm>

namespace millrace {

std::vector<RowBlock> CutIntoBlocks(uint64_t rows, uint64_t batch_size, bool drop_last) {
  std::vector<RowBlock> blocks;
  for (uint64_t begin = 0; begin < rows; begin += batch_size) {
    const RowBlock block{begin, std::min(begin + batch_size, rows)};
    if (!drop_last || block.end - block.begin == batch_size) blocks.push_back(block);
  }
  return blocks;
}

RowChannels::RowChannels(int queue_num, size_t blocks) : capacity_(blocks) {
  const auto count = static_cast<size_t>(std::max(queue_num, 1));
  for (Set& set : channels_) {
    for (size_t i = 0; i < count; ++i) {
      set.push_back(std::make_unique<Lane>((blocks + count - 1) / count));
    }
  }
}

bool RowChannels::Lane::Push(RowBlock block) {
  rows.fetch_add(static_cast<int64_t>(block.rows()), std::memory_order_relaxed);
  return blocks.TryPush(block);
}

std::optional<RowBlock> RowChannels::Lane::Pop() {
  const std::optional<RowBlock> block = blocks.TryPop();
  if (block) rows.fetch_sub(static_cast<int64_t>(block->rows()), std::memory_order_relaxed);
  return block;
}

void RowChannels::Clear() {
  for (const Set& set : channels_) {
    for (const auto& lane : set) {
      while (lane->Pop()) {
      }
    }
  }
}

bool RowChannels::Begin(const std::vector<RowBlock>& blocks) {
  if (Holds(blocks)) return true;
  Clear();
  const Set& output = channels_[cur_channel_];
  size_t number = 0;
  for (const RowBlock& block : blocks) {
    CHECK(output[number++ % output.size()]->Push(block)) << "more blocks than the channels were made for";
  }
  return false;
}

bool RowChannels::Holds(const std::vector<RowBlock>& blocks) {
  const auto count = [](const Set& set) {
    size_t sum = 0;
    for (const auto& lane : set) sum += lane->blocks.size();
    return sum;
  };
  const Set& output = channels_[cur_channel_];
  if (count(channels_[cur_channel_ ^ 1]) > 0 || count(output) != blocks.size()) return false;
  bool holds = true;
  // Each block passes once through its channel.
  for (size_t number = 0; number < blocks.size(); ++number) {
    Lane& lane = *output[number % output.size()];
    const std::optional<RowBlock> block = lane.Pop();
    if (!block) return false;
    holds = holds && *block == blocks[number];
    CHECK(lane.Push(*block));
  }
  return holds;
}

RowChannels::Cursor RowChannels::CursorOf(int worker, int workers) const {
  const size_t channels = channels_[0].size();
  const auto readers = static_cast<size_t>(workers);
  return {static_cast<size_t>(worker) % channels, readers < channels ? readers : 0};
}

std::optional<RowChannels::Taken> RowChannels::Take(Cursor& cursor) {
  const Set& output = channels_[cur_channel_];
  for (size_t i = 0; i < output.size(); ++i) {
    const size_t channel = (cursor.channel + i) % output.size();
    if (const std::optional<RowBlock> block = output[channel]->Pop()) {
      if (i == 0) cursor.channel = (cursor.channel + cursor.step) % output.size();
      return Taken{*block, channel};
    }
  }
  return std::nullopt;
}

void RowChannels::Recycle(const Taken& taken) {
  CHECK(channels_[cur_channel_ ^ 1][taken.channel]->Push(taken.block)) << "a block was recycled twice";
}

std::vector<int64_t> RowChannels::Rows(size_t set) const {
  std::vector<int64_t> rows;
  for (const auto& lane : channels_[set]) rows.push_back(lane->rows.load(std::memory_order_relaxed));
  return rows;
}

}  // namespace millrace
