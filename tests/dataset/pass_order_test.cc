#include "dataset/pass_order.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "dataset/row_channels.h"

namespace millrace {
namespace {

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

TEST(RowChannelsTest, BlocksMoveFromOutputToConsumeAndBack) {
  RowChannels channels(2, 5);
  channels.Deal(CutIntoBlocks(10, 2, false));
  EXPECT_EQ(channels.output_blocks(), 5U);
  EXPECT_EQ(channels.consume_blocks(), 0U);
  RowChannels::Cursor cursor{1, 2};
  std::vector<uint64_t> begins;
  while (const auto taken = channels.Take(cursor)) {
    begins.push_back(taken->block.begin);
    channels.Recycle(*taken);
  }
  // Worker 1 of 2 takes its own channel (blocks 1, 3), then helps with the other (0, 2, 4).
  EXPECT_EQ(begins, (std::vector<uint64_t>{2, 6, 0, 4, 8}));
  EXPECT_EQ(channels.consume_blocks(), 5U);
  channels.Swap();
  EXPECT_EQ(channels.output_blocks(), 5U);
  EXPECT_EQ(channels.consume_blocks(), 0U);
  channels.Deal(CutIntoBlocks(3, 2, true));
  EXPECT_EQ(channels.output_blocks(), 1U);
}

}  // namespace
}  // namespace millrace
