#include "dataset/pass_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/rng.h"
#include "dataset/input_channel.h"
#include "dataset/row_channels.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

TEST(PassOrderTest, NumbersTheGapsOfAnyLedger) {
  Rng rng(20240607);
  for (int trial = 0; trial < 200; ++trial) {
    const uint64_t rows = rng.Below(60);
    ConsumedRanges ranges;
    std::vector<uint64_t> untrained;
    for (uint64_t position = 0; position < rows; ++position) {
      if (rng.Below(3) == 0) {
        ranges.Add({0, position, position + 1});
      } else {
        untrained.push_back(position);
      }
    }
    const PassOrder order(rows, &ranges);
    ASSERT_EQ(order.size(), untrained.size());
    const uint64_t batch = 1 + rng.Below(9);
    for (uint64_t begin = 0; begin < order.size(); begin += batch) {
      const uint64_t end = std::min(begin + batch, order.size());
      std::vector<BatchSpan> spans;
      order.AppendSpans(begin, end, &spans);
      std::vector<uint64_t> positions;
      for (const BatchSpan& span : spans) {
        EXPECT_EQ(span.source, 0U);
        EXPECT_LT(span.begin, span.end);
        for (uint64_t i = span.begin; i < span.end; ++i) positions.push_back(i);
      }
      EXPECT_EQ(positions, std::vector<uint64_t>(untrained.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 untrained.begin() + static_cast<std::ptrdiff_t>(end)))
          << "trial " << trial;
    }
  }
}

TEST(InputChannelTest, BringsTheBlocksOfManyThreadsIntoTheOrderOfTheirPlaces) {
  constexpr uint32_t kFiles = 4;
  constexpr uint32_t kBlocks = 50;
  InputChannel input;
  {
    std::vector<std::jthread> threads;
    for (uint32_t file = 0; file < kFiles; ++file) {
      threads.emplace_back([&input, file] {
        for (uint32_t block = kBlocks; block-- > 0;)
          input.Put({file, 2 * block + 1, {{file, 2 * block}, {file, 2 * block + 1}}});
        input.Put({file, 1000, {}});
      });
    }
  }
  EXPECT_EQ(input.rows(), 2 * kFiles * kBlocks);
  input.Sort();
  const std::vector<RowHandle> copy = input.Copy();
  const std::vector<RowHandle> rows = input.TakeAll();
  ASSERT_EQ(rows.size(), 2 * kFiles * kBlocks);
  ASSERT_EQ(copy.size(), rows.size());
  for (uint32_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].run, i / (2 * kBlocks));
    EXPECT_EQ(rows[i].offset, i % (2 * kBlocks));
    EXPECT_EQ(copy[i].offset, rows[i].offset);
  }
  EXPECT_EQ(input.rows(), 0);
  EXPECT_EQ(input.bytes(), 0U);
  EXPECT_TRUE(input.TakeAll().empty());
}

TEST(RowChannelsTest, BlocksMoveFromOutputToConsumeAndBack) {
  RowChannels channels(2, 5);
  EXPECT_FALSE(channels.Begin(CutIntoBlocks(10, 2, false)));
  EXPECT_THAT(channels.output_rows(), ElementsAre(6, 4));
  EXPECT_THAT(channels.consume_rows(), ElementsAre(0, 0));
  RowChannels::Cursor cursor = channels.CursorOf(1, 2);
  std::vector<uint64_t> begins;
  while (const auto taken = channels.Take(cursor)) {
    begins.push_back(taken->block.begin);
    channels.Recycle(*taken);
  }
  // Worker 1 of 2 takes its own channel (blocks 1, 3), then helps with the other (0, 2, 4).
  EXPECT_EQ(begins, (std::vector<uint64_t>{2, 6, 0, 4, 8}));
  EXPECT_THAT(channels.consume_rows(), ElementsAre(6, 4));
  channels.Swap();
  EXPECT_THAT(channels.output_rows(), ElementsAre(6, 4));
  EXPECT_THAT(channels.consume_rows(), ElementsAre(0, 0));
  EXPECT_FALSE(channels.Begin(CutIntoBlocks(3, 2, true)));
  EXPECT_THAT(channels.output_rows(), ElementsAre(2, 0));
  channels.Clear();
  EXPECT_THAT(channels.output_rows(), ElementsAre(0, 0));
}

/// The blocks that a worker takes until there are none, `most` at most; each is used up at once.
std::vector<uint64_t> Read(RowChannels& channels, RowChannels::Cursor cursor, size_t most = SIZE_MAX) {
  std::vector<uint64_t> begins;
  while (begins.size() < most) {
    const auto taken = channels.Take(cursor);
    if (!taken) break;
    begins.push_back(taken->block.begin);
    channels.Recycle(*taken);
  }
  return begins;
}

TEST(RowChannelsTest, TheSwapCarriesTheNextPass) {
  const std::vector<RowBlock> blocks = CutIntoBlocks(10, 2, false);
  RowChannels channels(2, blocks.size());
  EXPECT_FALSE(channels.Begin(blocks));
  const std::vector<uint64_t> first = Read(channels, channels.CursorOf(0, 1));
  EXPECT_EQ(first, (std::vector<uint64_t>{0, 2, 4, 6, 8}));
  channels.Swap();
  EXPECT_TRUE(channels.Begin(blocks)) << "nobody dealt them";
  EXPECT_EQ(Read(channels, channels.CursorOf(0, 1)), first);
  channels.Swap();
  EXPECT_FALSE(channels.Begin(CutIntoBlocks(10, 5, false))) << "batches of another size";
  EXPECT_EQ(Read(channels, channels.CursorOf(0, 1)), (std::vector<uint64_t>{0, 5}));
  channels.Swap();

  EXPECT_FALSE(channels.Begin(blocks));
  EXPECT_EQ(Read(channels, channels.CursorOf(0, 1), 3).size(), 3U);
  channels.Swap();
  EXPECT_FALSE(channels.Begin(blocks)) << "the pass before was not read to its end";
  EXPECT_EQ(Read(channels, channels.CursorOf(0, 1)), first);
}

TEST(RowChannelsTest, AWorkerThatOvertakesAnotherOnItsChannelLeavesNoOtherOrder) {
  const std::vector<RowBlock> blocks = CutIntoBlocks(6, 2, false);
  RowChannels channels(1, blocks.size());
  EXPECT_FALSE(channels.Begin(blocks));
  RowChannels::Cursor slow = channels.CursorOf(0, 2);
  const auto taken = channels.Take(slow);
  EXPECT_EQ(Read(channels, channels.CursorOf(1, 2)), (std::vector<uint64_t>{2, 4}));
  channels.Recycle(*taken);
  channels.Swap();
  EXPECT_FALSE(channels.Begin(blocks));
  EXPECT_EQ(Read(channels, channels.CursorOf(0, 1)), (std::vector<uint64_t>{0, 2, 4}));
}

TEST(RowChannelsTest, EachWorkerHasOneChannelAndAChannelMayHaveSeveral) {
  RowChannels channels(2, 6);
  EXPECT_FALSE(channels.Begin(CutIntoBlocks(6, 1, false)));
  EXPECT_EQ(Read(channels, channels.CursorOf(0, 3), 1), (std::vector<uint64_t>{0}));
  EXPECT_EQ(Read(channels, channels.CursorOf(1, 3), 2), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(Read(channels, channels.CursorOf(2, 3), 2), (std::vector<uint64_t>{2, 4})) << "that of worker 0";
  EXPECT_EQ(Read(channels, channels.CursorOf(0, 3)), (std::vector<uint64_t>{5})) << "its own is empty: it helps";
}

}  // namespace
}  // namespace millrace
