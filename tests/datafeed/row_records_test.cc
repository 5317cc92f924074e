#include "datafeed/row_records.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "batch/batch_pool.h"
#include "data_feed.pb.h"
#include "datafeed/record_blocks.h"
#include "slow_source.h"

namespace millrace {
namespace {

/// Each byte is a row, which it takes from as many as it gets at once; '?' is a bad one, and '!' the last one, too.
class Letters final : public RowFile {
 public:
  explicit Letters(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {}
  Result<Got> Next(const std::stop_token& stop) override {
    if (at_ == end_) {
      MR_ASSIGN(end_, bytes_->Read(room_, stop));
      at_ = 0;
    }
    if (end_ == 0) return Got::kEnd;
    id_ = static_cast<uint64_t>(room_[at_++]);
    error_.ends_reading = id_ == '!';
    error_.column = at_;
    return id_ == '?' || id_ == '!' ? Got::kBad : Got::kRow;
  }
  std::span<const uint64_t> ids(SlotId) const override { return {&id_, 1}; }
  std::span<const float> floats(SlotId) const override { return {}; }
  const LineError& error() const override { return error_; }

 private:
  std::unique_ptr<ByteSource> bytes_;
  char room_[64] = {};
  size_t at_ = 0;
  size_t end_ = 0;
  uint64_t id_ = 0;
  LineError error_ = {.slot = "letter", .expectation = "a letter", .snippet = "?", .message = ""};
};

class RowRecordsTest : public ::testing::Test {
 protected:
  RowRecordsTest() {
    Slot* const slot = desc_.mutable_multi_slot_desc()->add_slots();
    slot->set_name("letter");
    slot->set_type("uint64");
    slot->set_is_used(true);
    schema_.emplace(SlotSchema::Create(desc_).value());
  }
  std::unique_ptr<RecordSource> Records(std::vector<std::string> pieces) {
    const auto open = [](std::unique_ptr<ByteSource> bytes, const std::string&) {
      return Result<std::unique_ptr<RowFile>>(std::make_unique<Letters>(std::move(bytes)));
    };
    return RecordsOfRows(open, std::make_unique<SlowSource>(std::move(pieces)), "a", *schema_, LineLimit(), "letters")
        .value();
  }

  DataFeedDesc desc_;
  std::optional<SlotSchema> schema_;
};

TEST_F(RowRecordsTest, RowsThatAFileTookAheadDoNotWaitForASlowSource) {
  RecordBlockReader reader(Records({"abc", "", "de"}), 0);
  LineBlock block;
  std::vector<uint64_t> rows;
  while (reader.Next(block, {}, BlockReader::Fill::kForAMoment).value()) rows.push_back(block.lines);
  EXPECT_EQ(rows, (std::vector<uint64_t>{1, 1, 1, 2}));
}

TEST_F(RowRecordsTest, ABadRowSaysWhatWasExpected) {
  const std::unique_ptr<RecordSource> records = Records({"?"});
  RecordFrame frame;
  ASSERT_TRUE(records->Next(&frame, {}).value());
  RowRecordFeed feed(*schema_, MultiSlotOptions());
  BatchPool pool(*schema_);
  const BatchPtr batch = pool.Take();
  ASSERT_TRUE(feed.Attach(batch.get()).ok());
  EXPECT_EQ(feed.ParseLine(frame.body).value(), LineResult::kBad);
  EXPECT_EQ(feed.error().ToString(), "slot \"letter\": expected a letter, found \"?\"");
}

TEST_F(RowRecordsTest, ABadRowsColumnAndThatItWasTheLastOneWereForgotten) {
  const std::unique_ptr<RecordSource> records = Records({"a?!"});
  RowRecordFeed feed(*schema_, MultiSlotOptions());
  BatchPool pool(*schema_);
  const BatchPtr batch = pool.Take();
  ASSERT_TRUE(feed.Attach(batch.get()).ok());
  RecordFrame frame;
  for (const size_t column : {1, 2, 3}) {
    ASSERT_TRUE(records->Next(&frame, {}).value());
    EXPECT_EQ(feed.ParseLine(frame.body).value(), column == 1 ? LineResult::kRow : LineResult::kBad);
    EXPECT_EQ(feed.error().column, column);
    EXPECT_EQ(feed.error().ends_reading, column == 3);
  }
}

}  // namespace
}  // namespace millrace
