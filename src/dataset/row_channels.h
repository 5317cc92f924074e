#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/channel.h"

namespace millrace {

/// A block of rows for one batch: numbers [begin, end) of a PassOrder.
struct RowBlock {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t rows() const { return end - begin; }
  friend bool operator==(const RowBlock&, const RowBlock&) = default;
};

/// Cuts [0, rows) into blocks of `batch_size` numbers; `drop_last` drops a smaller last one.
std::vector<RowBlock> CutIntoBlocks(uint64_t rows, uint64_t batch_size, bool drop_last);

/// The channels of an InMemoryDataset after its InputChannel, with Paddle's names. A pass deals the input rows to
/// `output` channels, one block per batch; used blocks go to `consume` channels. A pass ends by swapping the two
/// (cur_channel), and the next pass uses the result. Blocks are ranges of the order of handles; the handles do not
/// move.
///
/// Take and Recycle are thread-safe and neither wait nor allocate; the rest is for one thread.
class RowChannels {
 public:
  /// `queue_num` channels of each kind with room for `blocks` blocks in total.
  RowChannels(int queue_num, size_t blocks);

  /// Prepares the output channels for a pass of these blocks, dealt in turn. Returns true if the swap already left them
  /// in this order. Otherwise deals them: in the first pass, after a change of number or size of blocks, after a pass
  /// that was not read to its end, or if workers sharing a channel overtook each other.
  bool Begin(const std::vector<RowBlock>& blocks);

  /// A worker's path through the channels. With at least as many workers as channels, each worker has the channel of
  /// its number, like a reader in Paddle. Fewer workers rotate over the channels, so one worker sees the blocks in
  /// order.
  struct Cursor {
    size_t channel = 0;
    size_t step = 0;
  };
  Cursor CursorOf(int worker, int workers) const;
  struct Taken {
    RowBlock block;
    size_t channel = 0;
  };
  /// The next block; nullopt if the output channels are empty. Takes from other channels if its own is empty.
  std::optional<Taken> Take(Cursor& cursor);
  /// Puts a used block into the consume channel paired with the output channel it came from.
  void Recycle(const Taken& taken);
  /// Removes all blocks, because their rows moved elsewhere.
  void Clear();
  /// Exchanges consume and output channels.
  void Swap() { cur_channel_ ^= 1; }

  int queue_num() const { return static_cast<int>(channels_[0].size()); }
  /// Maximum number of blocks.
  size_t capacity() const { return capacity_; }
  /// Rows by channel. Any thread; approximate while workers run.
  std::vector<int64_t> output_rows() const { return Rows(cur_channel_); }
  std::vector<int64_t> consume_rows() const { return Rows(cur_channel_ ^ 1); }

 private:
  /// A channel with a row count.
  struct Lane {
    explicit Lane(size_t capacity) : blocks(capacity) {}
    bool Push(RowBlock block);
    std::optional<RowBlock> Pop();

    Channel<RowBlock> blocks;
    std::atomic<int64_t> rows{0};
  };
  using Set = std::vector<std::unique_ptr<Lane>>;
  std::vector<int64_t> Rows(size_t set) const;
  /// Whether the output channels hold exactly these blocks, each in the channel it would be dealt to.
  bool Holds(const std::vector<RowBlock>& blocks);

  Set channels_[2];
  size_t capacity_;
  size_t cur_channel_ = 0;
};

}  // namespace millrace
