#include "reader/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "reader/multi_pass_reader.h"
#include "reader/reader_holder.h"
#include "reader/row_reader.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

TEST(FileReader, DeliversRecordsThenSaysAgainAndAgainThatItIsAtTheEnd) {
  const auto reader = MakeRowReader("f", 0, 2);
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("0", "1"));
  std::vector<LoDTensor> item(1);
  const Result<bool> more = reader->ReadNext(&item, {});
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(*more);
  EXPECT_TRUE(item.empty());
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("0", "1"));
}

TEST(FileReader, KnowsWhetherThereIsMoreWithoutLosingIt) {
  const auto reader = MakeRowReader("f", 0, 2);
  std::vector<LoDTensor> item;
  for (const std::string expected : {"0", "1"}) {
    EXPECT_TRUE(*reader->HasNext({}));
    EXPECT_TRUE(*reader->HasNext({}));
    ASSERT_TRUE(*reader->ReadNext(&item, {}));
    EXPECT_EQ(FirstValues(item), expected);
  }
  EXPECT_FALSE(*reader->HasNext({}));
  EXPECT_FALSE(*reader->HasNext({}));
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_TRUE(*reader->HasNext({}));
}

TEST(FileReader, ReInitForgetsWhatWasReadAhead) {
  const auto reader = MakeRowReader("f", 0, 3);
  std::vector<LoDTensor> item;
  ASSERT_TRUE(*reader->ReadNext(&item, {}));
  ASSERT_TRUE(*reader->HasNext({}));
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("0", "1", "2"));
}

TEST(FileReader, NamesFileRecordOutputAndBothShapesOfARecordThatDoesNotFit) {
  const auto reader = MakeRowReader("data/part-3", 0, 5, {.misfits_at = 1});
  EXPECT_THAT(
      ReadToEnd(*reader),
      ElementsAre("0", "bad data: data/part-3: record 2: output 0: wanted float32 [-1, 2], got float32 [1, 3]"));
}

TEST(FileReader, RecordsAreCountedFromOneAsLinesAre) {
  const auto reader = MakeRowReader("f", 0, 5, {.misfits_at = 0});
  EXPECT_THAT(ReadToEnd(*reader),
              ElementsAre("bad data: f: record 1: output 0: wanted float32 [-1, 2], got float32 [1, 3]"));
}

TEST(FileReader, AFailureStaysUntilReInit) {
  const auto reader = MakeRowReader("f", 0, 5, {.fails_at = 1});
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("0", "bad data: f: record 2: broken"));
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("bad data: f: record 2: broken"));
  EXPECT_EQ(reader->HasNext({}).status().message(), "f: record 2: broken");
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("0", "bad data: f: record 2: broken"));
}

TEST(DecoratedReader, RefusesToTakeItemsFromNoReader) {
  EXPECT_THROW(MultiPassReader(nullptr, 2), std::invalid_argument);
}

TEST(CheckTensor, RefusesALoDThatDoesNotCutTheTensor) {
  LoDTensor tensor;
  tensor.values.Resize<int64_t>({3, 1});
  const TensorSpec spec{DType::kInt64, {-1, 1}, 1};
  tensor.lod = {0, 2, 3};
  EXPECT_TRUE(CheckTensor(tensor, spec).ok());
  for (const std::vector<uint32_t>& lod :
       {std::vector<uint32_t>{0, 2}, std::vector<uint32_t>{1, 3}, std::vector<uint32_t>{0, 4, 3}}) {
    tensor.lod = lod;
    EXPECT_THAT(CheckTensor(tensor, spec).message(),
                testing::StartsWith("the LoD does not cut int64 [3, 1] of lod_level 1: "));
  }
  tensor.lod.clear();
  EXPECT_EQ(CheckTensor(tensor, spec).message(), "wanted int64 [-1, 1] of lod_level 1, got int64 [3, 1]");
}

TEST(ReaderHolder, EndsAsItIsAsked) {
  ReaderHolder holder;
  holder.Hold(MakeRowReader("f", 0, 1), "rows");
  std::vector<LoDTensor> item;
  ASSERT_TRUE(holder.ReadNext(&item, EndOfData::kError, {}).ok());
  EXPECT_EQ(item.size(), 2U);
  EXPECT_TRUE(holder.ReadNext(&item, EndOfData::kEmpty, {}).ok());
  EXPECT_TRUE(item.empty());
  const Status end = holder.ReadNext(&item, EndOfData::kError, {});
  EXPECT_EQ(end.code(), StatusCode::kNotFound);
  EXPECT_EQ(end.message(),
            "the reader is at its end after 1 items: ask has_next first, reset it, or read with throw_eof_exp: false");
}

/// Delivers one item: a matrix of doubles.
class OneMatrix final : public ReaderBase {
 public:
  explicit OneMatrix(std::vector<double> values)
      : ReaderBase({{DType::kFloat64, {-1, 2}, 0}}), values_(std::move(values)) {}

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token&) override {
    if (std::exchange(is_done_, true)) return false;
    out->resize(1);
    double* to = (*out)[0].values.Resize<double>({static_cast<int64_t>(values_.size()) / 2, 2});
    std::copy(values_.begin(), values_.end(), to);
    return true;
  }
  Status Restart() override {
    is_done_ = false;
    return Status::Ok();
  }

  std::vector<double> values_;
  bool is_done_ = false;
};

TEST(ReaderHolder, ANanWentToWhoTrainsByIt) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [values, found] : std::vector<std::pair<std::vector<double>, std::string>>{
           {{1, 2, 3, nan}, "nan (row 1, value 1, from 0)"}, {{-inf, 2}, "-inf (row 0, value 0, from 0)"}}) {
    ReaderHolder holder;
    holder.Hold(std::make_unique<OneMatrix>(values), "matrix");
    std::vector<LoDTensor> item;
    EXPECT_TRUE(holder.ReadNext(&item, EndOfData::kError, {}).ok()) << "unless it is asked for";
    ASSERT_TRUE(holder.ReInit().ok());
    holder.set_only_finite(true);
    const Status refused = holder.ReadNext(&item, EndOfData::kError, {});
    EXPECT_EQ(refused.code(), StatusCode::kBadData);
    EXPECT_EQ(refused.message(), "output 0 of the reader: " + found +
                                     ", which trains the parameters to nan; leave such rows out, or give a value for "
                                     "what is missing");
  }
}

TEST(ReaderHolder, GivesItsReaderAwayOnce) {
  ReaderHolder holder;
  EXPECT_FALSE(holder.made());
  EXPECT_EQ(holder.ReInit().message(),
            "no operator has made the reader; its creation belongs into the startup program");
  holder.Hold(MakeRowReader("f", 0, 1), "rows");
  EXPECT_TRUE(holder.made());
  EXPECT_TRUE(holder.Take("batches").ok());
  EXPECT_TRUE(holder.made());
  EXPECT_EQ(holder.Take("others").status().message(), "the reader has become a part of \"batches\"; use that one");
  EXPECT_EQ(holder.HasNext({}).status().message(), "the reader has become a part of \"batches\"; use that one");
}

TEST(ReaderHolder, MovesAFreshReaderToWhereAnotherStood) {
  ReaderHolder first;
  first.Hold(MakeRowReader("f", 0, 5), "rows");
  std::vector<LoDTensor> item;
  ASSERT_TRUE(first.ReadNext(&item, EndOfData::kError, {}).ok());
  ASSERT_TRUE(first.ReInit().ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(first.ReadNext(&item, EndOfData::kError, {}).ok());
  EXPECT_EQ(first.position(), (ReaderPosition{.resets = 1, .items = 3}));

  ReaderHolder second;
  second.Hold(MakeRowReader("f", 0, 5), "rows");
  ASSERT_TRUE(second.MoveTo(first.position(), {}).ok());
  EXPECT_EQ(second.position(), first.position());
  ASSERT_TRUE(second.ReadNext(&item, EndOfData::kError, {}).ok());
  EXPECT_EQ(FirstValues(item), "3");

  ReaderHolder shorter;
  shorter.Hold(MakeRowReader("f", 0, 2), "rows");
  EXPECT_THAT(shorter.MoveTo(first.position(), {}).message(),
              testing::StartsWith("going on from a checkpoint: the reader is at its end after 2 items"));
}

}  // namespace
}  // namespace millrace
