// A format that has a reader alone feeds datasets, too.
#include "datafeed/reader_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "data_feed.pb.h"
#include "datafeed/batch_text.h"
#include "datafeed/line_case.h"
#include "dataset/queue_dataset.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

/// Each character of a text is a record: a letter gives as many ids of it as it has outputs, "2" the lists of two
/// examples, "!" fails.
class Letters final : public FileReader {
 public:
  Letters(const std::string& file, const std::vector<TensorSpec>& shapes) : FileReader(file, shapes) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token&) override {
    MR_ASSIGN(const std::string text, ReadFile(file()));
    if (next_ == text.size()) return false;
    const char letter = text[next_++];
    if (letter == '!') return BadData(Where() + ": an exclamation mark");
    for (size_t i = 0; i < out->size(); ++i) {
      const size_t count = i + 1;
      if (shapes()[i].dtype == DType::kFloat32) {
        std::fill_n(static_cast<float*>(ResizeToInstance(shapes()[i], count, &(*out)[i])), count, 0.5F);
      } else {
        std::fill_n(static_cast<int64_t*>(ResizeToInstance(shapes()[i], count, &(*out)[i])), count, -int64_t{letter});
      }
      if (letter == '2' && shapes()[i].lod_level > 0) (*out)[i].lod = {0, 0, static_cast<uint32_t>(count)};
    }
    return true;
  }
  Status Rewind() override {
    next_ = 0;
    return Status::Ok();
  }
  size_t next_ = 0;
};

class ReaderRowsTest : public ::testing::Test {
 protected:
  ReaderRowsTest() {
    FileFormat format;
    format.tag = "letters";
    format.doc = "a letter";
    format.open = [](const std::string& file, const std::vector<TensorSpec>& shapes) {
      return Result<std::unique_ptr<FileReader>>(std::make_unique<Letters>(file, shapes));
    };
    EXPECT_TRUE(formats_.Add(format).ok());
    format.tag = "csv";
    EXPECT_TRUE(formats_.Add(format).ok());
    EXPECT_TRUE(AddFeedsOfFormats(formats_, "", "", &feeds_).ok());
    desc_ = testing::DescOf("a:uint64 b:float[2]");
    desc_.set_name("letters");
    desc_.set_batch_size(10);
  }

  /// The rows that a dataset reads from a text, and then its failure.
  std::string Rows(const std::string& text) {
    const std::string file = dir_.path() + "/part-0";
    EXPECT_TRUE(WriteFileAtomically(file, text).ok());
    Result<std::unique_ptr<QueueDataset>> dataset = QueueDataset::Create(desc_, {"letters:" + file}, feeds_, {});
    if (!dataset.ok()) return dataset.status().message();
    EXPECT_TRUE((*dataset)->BeginPass({.workers = 1, .ordered = true}).ok());
    std::string rows;
    for (;;) {
      const Result<BatchPtr> batch = (*dataset)->source(0).Next({});
      if (!batch.ok()) return rows + batch.status().message();
      if (*batch == nullptr) return rows;
      for (int row = 0; row < (*batch)->rows(); ++row) rows += testing::RowText(**batch, row) + "; ";
    }
  }
  std::string file() const { return dir_.path() + "/part-0"; }

  TempDir dir_ = TempDir::Create("reader_rows").value();
  ReaderRegistry formats_;
  DataFeedFactory feeds_ = DataFeedFactory::Builtin();
  DataFeedDesc desc_;
};

TEST_F(ReaderRowsTest, RecordsAreRowsAndIdsKeepTheir64Bits) {
  EXPECT_EQ(Rows("AB"), "a=18446744073709551551 b=0.5,0.5; a=18446744073709551550 b=0.5,0.5; ");
  EXPECT_EQ(Rows(""), "");
}

TEST_F(ReaderRowsTest, ASlotThatIsNotUsedIsAnOutputAllTheSame) {
  desc_ = testing::DescOf("a:uint64 b:uint64 c:uint64");
  desc_.mutable_multi_slot_desc()->mutable_slots(1)->set_is_used(false);
  desc_.set_name("letters");
  desc_.set_batch_size(10);
  EXPECT_EQ(Rows("\x01"), "a=18446744073709551615 c=18446744073709551615,18446744073709551615,18446744073709551615; ");
}

TEST_F(ReaderRowsTest, AFormatWithAFeedOfItsOwnKeepsIt) {
  EXPECT_EQ(feeds_.Find("csv")->cut_of, nullptr);
  EXPECT_FALSE(feeds_.ReadsText("letters"));
}

TEST_F(ReaderRowsTest, ABatchInARecordIsABadLine) {
  EXPECT_THAT(Rows("A2A"), HasSubstr(": record 2: slot \"a\": expected the values of one example, found 2 lists"));
  desc_.mutable_bad_lines()->set_action(BadLinePolicy::SKIP);
  desc_.mutable_bad_lines()->set_max_fraction(1);
  EXPECT_EQ(Rows("2A"), "a=18446744073709551551 b=0.5,0.5; ");
}

TEST_F(ReaderRowsTest, WhatTheReaderFailsAtEndsReadingAndIsNamedOnce) {
  desc_.mutable_bad_lines()->set_action(BadLinePolicy::SKIP);
  EXPECT_EQ(Rows("!"), "letters:" + file() + ": record 1: an exclamation mark after 0 rows");
}

TEST_F(ReaderRowsTest, CommandsAndAttributesAreRefusedByName) {
  desc_.set_pipe_command("cat -v");
  EXPECT_EQ(
      Rows("A"),
      "data_desc.pipe_command: a file of the format \"letters\" is opened by its path, so that no command can stand "
      "before it");
  desc_.clear_pipe_command();
  desc_.add_attrs()->set_name("key");
  EXPECT_THAT(Rows("A"), HasSubstr("data_desc.attrs[0]: a file of the format \"letters\" has no attributes"));
}

}  // namespace
}  // namespace millrace
