#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "core/shuffle.h"
#include "reader/batch_reader.h"
#include "reader/double_buffer_reader.h"
#include "reader/multi_pass_reader.h"
#include "reader/random_reader.h"
#include "reader/reader_holder.h"
#include "reader/row_reader.h"
#include "reader/shuffle_reader.h"
#include "threads_now.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::unique_ptr<ReaderBase> Batched(std::unique_ptr<ReaderBase> reader, int64_t size, bool drop_last = false) {
  return BatchReader::Create(std::move(reader), size, drop_last).value();
}

TEST(BatchReader, PutsTensorsEndToEndAndSequencesBehindEachOther) {
  const auto reader = Batched(MakeRowReader("f", 1, 5, {.values_of_last = 3}), 2);
  EXPECT_EQ(reader->shapes()[0].ToString(), "float32 [-1, 2]");
  EXPECT_EQ(reader->shapes()[1].ToString(), "int64 [-1, 1] of lod_level 1");
  std::vector<LoDTensor> batch;
  ASSERT_TRUE(*reader->ReadNext(&batch, {}));
  EXPECT_EQ(batch[0].values.dims(), (Dims{2, 2}));
  EXPECT_EQ(FirstValues(batch), "1 2");
  EXPECT_EQ(batch[0].values.data<float>()[3], -2);
  EXPECT_TRUE(batch[0].lod.empty());
  EXPECT_THAT(batch[1].lod, ElementsAre(0, 1, 3));
  EXPECT_THAT(std::vector<int64_t>(batch[1].values.data<int64_t>(), batch[1].values.data<int64_t>() + 3),
              ElementsAre(10, 20, 21));
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("3 4", "5"));
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("1 2", "3 4", "5"));
}

TEST(BatchReader, LeavesOutWhatDoesNotFillABatchWhenAsked) {
  EXPECT_THAT(ReadToEnd(*Batched(MakeRowReader("f", 0, 5), 2, true)), ElementsAre("0 1", "2 3"));
  EXPECT_THAT(ReadToEnd(*Batched(MakeRowReader("f", 0, 4), 2, true)), ElementsAre("0 1", "2 3"));
  EXPECT_THAT(ReadToEnd(*Batched(MakeRowReader("f", 0, 0), 2)), ElementsAre());
}

TEST(BatchReader, CanBeStacked) {
  EXPECT_THAT(ReadToEnd(*Batched(Batched(MakeRowReader("f", 0, 5), 2), 2)), ElementsAre("0 1 2 3", "4"));
}

TEST(BatchReader, RefusesASizeBelow1) {
  EXPECT_EQ(BatchReader::Create(MakeRowReader("f", 0, 1), 0, false).status().message(),
            "batch_size is at least 1, not 0");
}

TEST(ShuffleReader, DeliversEveryItemOnceInAnOrderThatTheSeedAndThePassDecide) {
  const auto order = [](uint64_t seed, int passes) {
    ShuffleReader reader(MakeRowReader("f", 0, 50), 100, seed);
    std::vector<std::string> items = ReadToEnd(reader);
    for (int i = 1; i < passes; ++i) {
      EXPECT_TRUE(reader.ReInit().ok());
      items = ReadToEnd(reader);
    }
    return items;
  };
  const std::vector<std::string> first = order(7, 1);
  EXPECT_THAT(first, testing::UnorderedElementsAreArray(Numbers(0, 50)));
  EXPECT_NE(first, Numbers(0, 50));
  EXPECT_EQ(first, order(7, 1));
  EXPECT_NE(first, order(8, 1));
  EXPECT_NE(first, order(7, 2));
  EXPECT_THAT(order(7, 2), testing::UnorderedElementsAreArray(Numbers(0, 50)));
}

TEST(ShuffleReader, MovesNoItemFurtherThanItsBuffer) {
  ShuffleReader reader(MakeRowReader("f", 0, 10), 4, 1);
  std::vector<std::string> items = ReadToEnd(reader);
  ASSERT_EQ(items.size(), 10U);
  EXPECT_THAT(std::vector<std::string>(items.begin(), items.begin() + 4),
              testing::UnorderedElementsAreArray(Numbers(0, 4)));
  EXPECT_THAT(std::vector<std::string>(items.begin() + 8, items.end()),
              testing::UnorderedElementsAreArray(Numbers(8, 10)));
}

TEST(ShuffleReader, HasAnOrderThatStays) {
  ShuffleReader reader(MakeRowReader("f", 0, 6), 6, 1);
  const std::vector<std::string> items = ReadToEnd(reader);
  EXPECT_THAT(items, testing::UnorderedElementsAreArray(Numbers(0, 6)));
  EXPECT_THAT(items, ElementsAre("4", "0", "2", "3", "5", "1"));
}

TEST(ShuffleReader, TakesMemoryForTheItemsThereAreHoweverLargeItsBuffer) {
  ShuffleReader reader(MakeRowReader("f", 0, 10), SIZE_MAX / 2, 1);
  EXPECT_THAT(ReadToEnd(reader), testing::UnorderedElementsAreArray(Numbers(0, 10)));
  EXPECT_THAT(ReadToEnd(*Batched(MakeRowReader("f", 0, 3), INT64_MAX)), ElementsAre("0 1 2"));
}

TEST(MultiPassReader, RepeatsItsReader) {
  MultiPassReader reader(MakeRowReader("f", 0, 2), 3);
  EXPECT_THAT(ReadToEnd(reader), ElementsAre("0", "1", "0", "1", "0", "1"));
  EXPECT_FALSE(*reader.HasNext({}));
  ASSERT_TRUE(reader.ReInit().ok());
  EXPECT_TRUE(*reader.HasNext({}));
  EXPECT_EQ(ReadToEnd(reader).size(), 6U);
}

// The order of what follows a reset was once that of the pass which had been reached, and so chance behind a thread
// that reads ahead.
TEST(MultiPassReader, ShufflesAfterAResetHoweverFarItWasRead) {
  const auto after_reset = [](int read, bool is_double_buffered) {
    std::unique_ptr<ReaderBase> reader =
        std::make_unique<MultiPassReader>(std::make_unique<ShuffleReader>(MakeRowReader("f", 0, 20), 20, 7), 3);
    if (is_double_buffered) reader = std::make_unique<DoubleBufferReader>(std::move(reader));
    std::vector<LoDTensor> item;
    for (int i = 0; i < read; ++i) EXPECT_TRUE(*reader->ReadNext(&item, {}));
    EXPECT_TRUE(reader->ReInit().ok());
    return ReadToEnd(*reader);
  };
  const std::vector<std::string> whole = after_reset(60, false);
  ASSERT_EQ(whole.size(), 60U);
  for (const int read : {0, 1, 19, 20, 21, 45}) {
    EXPECT_EQ(after_reset(read, false), whole) << read;
    EXPECT_EQ(after_reset(read, true), whole) << read;
  }
  ShuffleReader fourth(MakeRowReader("f", 0, 20), 20, 7);
  ASSERT_TRUE(fourth.StartPass(3).ok());
  EXPECT_EQ(ReadToEnd(fourth), std::vector<std::string>(whole.begin(), whole.begin() + 20));
}

TEST(MultiPassReader, GoesOnFromACheckpointBehindAReset) {
  const auto hold = [](ReaderHolder& holder) {
    holder.Hold(std::make_unique<MultiPassReader>(std::make_unique<ShuffleReader>(MakeRowReader("f", 0, 20), 20, 7), 3),
                "rows");
  };
  const auto read = [](ReaderHolder& holder, int items) {
    std::vector<std::string> values;
    std::vector<LoDTensor> item;
    for (int i = 0; i < items; ++i) {
      EXPECT_TRUE(holder.ReadNext(&item, EndOfData::kError, {}).ok());
      values.push_back(FirstValues(item));
    }
    return values;
  };
  ReaderHolder undisturbed;
  hold(undisturbed);
  read(undisturbed, 60);
  ASSERT_TRUE(undisturbed.ReInit().ok());
  read(undisturbed, 25);
  ASSERT_TRUE(undisturbed.ReInit().ok());
  read(undisturbed, 5);
  ReaderHolder resumed;
  hold(resumed);
  ASSERT_TRUE(resumed.MoveTo(undisturbed.position(), {}).ok());
  EXPECT_EQ(read(resumed, 55), read(undisturbed, 55));
}

TEST(MultiPassReader, EndsWhenThereIsNothingToRepeat) {
  MultiPassReader reader(MakeRowReader("f", 0, 0), 1000);
  EXPECT_THAT(ReadToEnd(reader), ElementsAre());
}

TEST(DoubleBufferReader, DeliversTheSameItems) {
  DoubleBufferReader reader(MakeRowReader("f", 0, 100));
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_THAT(ReadToEnd(reader), ElementsAreArray(Numbers(0, 100)));
    ASSERT_TRUE(reader.ReInit().ok());
  }
}

TEST(DoubleBufferReader, StartsOverInTheMiddle) {
  DoubleBufferReader reader(MakeRowReader("f", 0, 100));
  std::vector<LoDTensor> item;
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(*reader.ReadNext(&item, {}));
  ASSERT_TRUE(reader.ReInit().ok());
  EXPECT_THAT(ReadToEnd(reader), ElementsAreArray(Numbers(0, 100)));
}

TEST(DoubleBufferReader, DeliversWhatIsBeforeAFailureAndThenTheFailure) {
  DoubleBufferReader reader(MakeRowReader("f", 0, 9, {.fails_at = 3}));
  EXPECT_THAT(ReadToEnd(reader), ElementsAre("0", "1", "2", "bad data: f: record 4: broken"));
}

TEST(DoubleBufferReader, LeavesNoThreadBehind) {
  const int before = ThreadsNow();
  {
    DoubleBufferReader reader(MakeRowReader("f", 0, 1000));
    std::vector<LoDTensor> item;
    ASSERT_TRUE(*reader.ReadNext(&item, {}));
    EXPECT_EQ(ThreadsOnce(before + 1), before + 1);
  }
  EXPECT_EQ(ThreadsOnce(before), before);
}

/// What every order of decorators must keep: with 3 passes over 20 rows, each row comes three times.
TEST(Decorators, MayBeStackedInAnyOrder) {
  std::string order = "bdms";
  std::vector<std::string> expected;
  for (int pass = 0; pass < 3; ++pass) {
    for (int i = 0; i < 20; ++i) expected.push_back(std::to_string(i));
  }
  std::sort(expected.begin(), expected.end());
  do {
    std::unique_ptr<ReaderBase> reader = MakeRowReader("f", 0, 20);
    for (const char decorator : order) {
      switch (decorator) {
        case 'b': reader = Batched(std::move(reader), 3); break;
        case 'd': reader = std::make_unique<DoubleBufferReader>(std::move(reader)); break;
        case 'm': reader = std::make_unique<MultiPassReader>(std::move(reader), 3); break;
        default: reader = std::make_unique<ShuffleReader>(std::move(reader), 8, 5); break;
      }
    }
    std::vector<std::string> rows;
    for (const std::string& item : ReadToEnd(*reader)) {
      size_t at = 0;
      for (size_t blank = item.find(' '); blank != std::string::npos; blank = item.find(' ', at)) {
        rows.push_back(item.substr(at, blank - at));
        at = blank + 1;
      }
      rows.push_back(item.substr(at));
    }
    std::sort(rows.begin(), rows.end());
    EXPECT_EQ(rows, expected) << order;
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RandomReader, MakesUpTheSameValuesFromTheSameSeed) {
  const std::vector<TensorSpec> shapes = {{DType::kFloat32, {-1, 3}, 0}, {DType::kFloat32, {2, 2}, 0}};
  const auto draw = [&](uint64_t seed, int resets) {
    const auto reader = RandomReader::Create(-1, 2, seed, shapes).value();
    for (int i = 0; i < resets; ++i) EXPECT_TRUE(reader->ReInit().ok());
    std::vector<LoDTensor> item;
    std::vector<float> values;
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(*reader->ReadNext(&item, {}));
      EXPECT_EQ(item[0].values.dims(), (Dims{1, 3}));
      EXPECT_EQ(item[1].values.dims(), (Dims{2, 2}));
      for (const LoDTensor& tensor : item) {
        values.insert(values.end(), tensor.values.data<float>(), tensor.values.data<float>() + tensor.values.numel());
      }
    }
    return values;
  };
  const std::vector<float> values = draw(3, 0);
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return v >= -1 && v < 2; }));
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -0.9F);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 1.9F);
  EXPECT_EQ(values, draw(3, 0));
  EXPECT_NE(values, draw(4, 0));
  EXPECT_NE(values, draw(3, 1));
  EXPECT_EQ(RandomReader::Create(2, 2, 1, shapes).status().message(), "low 2 is not below high 2");
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(RandomReader::Create(-infinity, 1, 1, shapes).ok());
  EXPECT_FALSE(RandomReader::Create(-3e38F, 3e38F, 1, shapes).ok());
  EXPECT_FALSE(RandomReader::Create(std::nanf(""), 1, 1, shapes).ok());
  EXPECT_EQ(RandomReader::Create(0, 1, 1, {{DType::kInt64, {1}, 0}}).status().message(),
            "output 0 is int64 [1]; random values are float32 without LoD");
}

}  // namespace
}  // namespace millrace
