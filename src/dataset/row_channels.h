#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/channel.h"

namespace millrace {

/// A block of rows that becomes one batch: numbers [begin, end) of a PassOrder.
struct RowBlock {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t rows() const { return end - begin; }
  friend bool operator==(const RowBlock&, const RowBlock&) = default;
};

/// Cuts [0, rows) into blocks of `batch_size` numbers; a smaller last one is left out with `drop_last`.
std::vector<RowBlock> CutIntoBlocks(uint64_t rows, uint64_t batch_size, bool drop_last);

/// The channels of an InMemoryDataset behind its InputChannel, by their names in Paddle: a pass deals the rows that it
/// took from the input to `output` channels, a block for each batch; they go to `consume` channels when they were used;
/// a pass ends by swapping the two (cur_channel), and the next pass goes on with what the swap brought. Blocks are
/// ranges of the order of handles: the handles themselves stay where they are.
///
/// Taking and giving on are thread-safe, wait for nothing and allocate nothing; the rest is for one thread.
class RowChannels {
 public:
  /// `queue_num` channels of each kind with room for `blocks` blocks together.
  RowChannels(int queue_num, size_t blocks);

  /// Readies the output channels for a pass of these blocks, in turn one for each. True when the swap has brought them,
  /// in this order; otherwise (the first pass, another number or size of blocks, a pass before that was not read to its
  /// end, or whose workers shared a channel and overtook each other) they are dealt.
  bool Begin(const std::vector<RowBlock>& blocks);

  /// One worker's way through the channels. Each of at least as many workers as channels has one, that of its number,
  /// as a reader of Paddle has; fewer workers go on from channel to channel in turns, so that one meets the blocks in
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
  /// The next block; nothing when the output channels are empty. Helps out in other channels when the own is empty.
  std::optional<Taken> Take(Cursor& cursor);
  /// Puts a used block into the consume channel that stands beside the output channel it came from.
  void Recycle(const Taken& taken);
  /// Takes every block out: its rows went elsewhere.
  void Clear();
  /// Makes consume channels of the output channels and the other way round.
  void Swap() { cur_channel_ ^= 1; }

  int queue_num() const { return static_cast<int>(channels_[0].size()); }
  /// Blocks that there is room for.
  size_t capacity() const { return capacity_; }
  /// Rows by channel. Any thread; while workers are at work, as of a moment ago.
  std::vector<int64_t> output_rows() const { return Rows(cur_channel_); }
  std::vector<int64_t> consume_rows() const { return Rows(cur_channel_ ^ 1); }

 private:
  /// A channel that knows its rows.
  struct Lane {
    explicit Lane(size_t capacity) : blocks(capacity) {}
    bool Push(RowBlock block);
    std::optional<RowBlock> Pop();

    Channel<RowBlock> blocks;
    std::atomic<int64_t> rows{0};
  };
  using Set = std::vector<std::unique_ptr<Lane>>;
  std::vector<int64_t> Rows(size_t set) const;
  /// Whether the output channels hold these blocks alone, each where it would be dealt to.
  bool Holds(const std::vector<RowBlock>& blocks);

  Set channels_[2];
  size_t capacity_;
  size_t cur_channel_ = 0;
};

}  // namespace millrace
