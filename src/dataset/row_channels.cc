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
      set.push_back(std::make_unique<Channel<RowBlock>>((blocks + count - 1) / count));
    }
  }
}

bool RowChannels::Begin(const std::vector<RowBlock>& blocks) {
  if (Holds(blocks)) return true;
  for (Set& set : channels_) {
    for (const auto& channel : set) {
      while (channel->TryPop()) {
      }
    }
  }
  const Set& output = channels_[cur_channel_];
  size_t number = 0;
  for (RowBlock block : blocks) {
    CHECK(output[number++ % output.size()]->TryPush(block)) << "more blocks than the channels were made for";
  }
  return false;
}

bool RowChannels::Holds(const std::vector<RowBlock>& blocks) {
  if (consume_blocks() > 0 || output_blocks() != blocks.size()) return false;
  const Set& output = channels_[cur_channel_];
  bool holds = true;
  // Each block goes once around its channel.
  for (size_t number = 0; number < blocks.size(); ++number) {
    Channel<RowBlock>& channel = *output[number % output.size()];
    std::optional<RowBlock> block = channel.TryPop();
    if (!block) return false;
    holds = holds && *block == blocks[number];
    CHECK(channel.TryPush(*block));
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
    if (const std::optional<RowBlock> block = output[channel]->TryPop()) {
      if (i == 0) cursor.channel = (cursor.channel + cursor.step) % output.size();
      return Taken{*block, channel};
    }
  }
  return std::nullopt;
}

void RowChannels::Recycle(const Taken& taken) {
  RowBlock block = taken.block;
  CHECK(channels_[cur_channel_ ^ 1][taken.channel]->TryPush(block)) << "a block was recycled twice";
}

size_t RowChannels::Count(size_t set) const {
  size_t blocks = 0;
  for (const auto& channel : channels_[set]) blocks += channel->size();
  return blocks;
}

}  // namespace millrace
