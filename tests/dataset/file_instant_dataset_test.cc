// Binary files: converted from text, shared by workers, resumed, and cut off while they are read.

#include "dataset/file_instant_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/file.h"
#include "datafeed/batch_text.h"
#include "dataset/instant_converter.h"
#include "dataset/queue_dataset.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

std::string BatchText(const SlotBatch& batch) {
  std::string text;
  for (int row = 0; row < batch.rows(); ++row) text += (row == 0 ? "" : " | ") + testing::RowText(batch, row);
  return text;
}

std::vector<std::string> ReadAll(Dataset& dataset, const PassOptions& options = {}) {
  EXPECT_TRUE(dataset.BeginPass(options).ok());
  std::vector<std::string> batches;
  while (true) {
    Result<BatchPtr> batch = dataset.source(0).Next({});
    EXPECT_TRUE(batch.ok()) << batch.status().ToString();
    if (!batch.ok() || *batch == nullptr) break;
    batches.push_back(BatchText(**batch));
  }
  EXPECT_TRUE(dataset.EndPass().ok());
  return batches;
}

class FileInstantTest : public ::testing::Test {
 protected:
  FileInstantTest() : desc_(testing::DescOf("label:uint64[1] a:uint64 x:float d:float[3]")) {
    desc_.set_batch_size(7);
    for (int file = 0; file < 2; ++file) {
      text_files_.push_back(dir_.path() + "/text-" + std::to_string(file));
      std::ofstream out(text_files_.back());
      for (int row = 0; row < 50 + file; ++row) {
        const int n = 1 + (row * 5 + file) % 6;
        out << "1 " << row % 2 << " " << n;
        for (int i = 0; i < n; ++i) out << " " << (1ULL << (row % 64)) + static_cast<unsigned>(i);
        out << " 1 " << 0.25 * row << " 3 " << row << " " << -row << " 0\n";
      }
    }
  }

  ConvertRequest Request(uint64_t part_bytes = 1 << 20) {
    ConvertRequest request;
    request.desc = &desc_;
    request.files = text_files_;
    request.output_dir = dir_.path() + "/binary";
    request.part_bytes = part_bytes;
    return request;
  }
  std::vector<std::string> Parts() const {
    std::vector<std::string> parts;
    for (const auto& entry : fs::directory_iterator(dir_.path() + "/binary")) {
      if (entry.path().filename().string().starts_with("part-")) parts.push_back(entry.path().string());
    }
    std::sort(parts.begin(), parts.end());
    return parts;
  }
  std::vector<std::string> TextBatches() const {
    return ReadAll(*QueueDataset::Create(desc_, text_files_, DataFeedFactory::Builtin(), {}).value());
  }

  TempDir dir_ = TempDir::Create("millrace_instant_").value();
  DataFeedDesc desc_;
  std::vector<std::string> text_files_;
};

TEST_F(FileInstantTest, AFileThatIsReplacedBetweenPassesIsAnError) {
  ASSERT_TRUE(ConvertToInstant(Request(), {}).ok());
  const std::string part = Parts()[0];
  const std::unique_ptr<FileInstantDataset> dataset =
      FileInstantDataset::Create(desc_, {part}, DataFeedFactory::Builtin()).value();
  EXPECT_EQ(ReadAll(*dataset), ReadAll(*dataset));
  fs::copy_file(part, part + ".new");
  fs::resize_file(part + ".new", 0);
  fs::rename(part + ".new", part);
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  const Status changed = dataset->source(0).Next({}).status();
  EXPECT_EQ(changed.code(), StatusCode::kIo);
  EXPECT_NE(changed.message().find("has changed since it was first read"), std::string::npos) << changed.ToString();
}

TEST_F(FileInstantTest, ConvertedFilesGiveTheBatchesOfTheText) {
  const Result<ConvertReport> report = ConvertToInstant(Request(), {});
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->rows, 101);
  EXPECT_EQ(Parts().size(), 1U);
  EXPECT_EQ(report->bytes, static_cast<int64_t>(fs::file_size(Parts()[0])));
  EXPECT_EQ(ReadAll(*FileInstantDataset::Create(desc_, Parts(), DataFeedFactory::Builtin()).value()), TextBatches());
}

/// Reads as Millrace does, and adds one to every id of slot 0.
class OneMore final : public InstantFeed {
 public:
  explicit OneMore(const SlotSchema& schema) : feed_(schema, false, false) {}
  Status FindRows(std::span<const uint8_t> file, size_t begin, int most, uint64_t row,
                  InstantFormat::Rows* rows) const override {
    return feed_.FindRows(file, begin, most, row, rows);
  }
  int64_t CopyRows(std::span<const uint8_t> file, const InstantFormat::Rows& rows, SlotBatch* batch) const override {
    const int64_t zeros = feed_.CopyRows(file, rows, batch);
    for (uint64_t& id : batch->column(0).ids) ++id;
    return zeros;
  }

 private:
  MultiSlotFileInstantDataFeed feed_;
};

TEST_F(FileInstantTest, AFeedOfOnesOwnReadsTheMappedFiles) {
  ASSERT_TRUE(ConvertToInstant(Request(), {}).ok());
  DataFeedFactory feeds = DataFeedFactory::Builtin();
  const InstantFeed::Maker maker = [](const SlotSchema& schema, const DataFeedDesc&) {
    return std::unique_ptr<const InstantFeed>(std::make_unique<OneMore>(schema));
  };
  ASSERT_TRUE(feeds.Add("OneMore", "ids of slot 0 and one", {.instant = maker}).ok());
  DataFeedDesc desc = desc_;
  const auto first_ids = [&](const std::string& name) {
    desc.set_name(name);
    auto dataset = FileInstantDataset::Create(desc, Parts(), feeds).value();
    EXPECT_TRUE(dataset->BeginPass({}).ok());
    const BatchPtr batch = dataset->source(0).Next({}).value();
    return std::vector<uint64_t>(batch->ids(0).begin(), batch->ids(0).end());
  };
  std::vector<uint64_t> ids = first_ids("MultiSlotFileInstantDataFeed");
  for (uint64_t& id : ids) ++id;
  EXPECT_EQ(first_ids("OneMore"), ids);
  EXPECT_EQ(QueueDataset::Create(desc, Parts(), feeds, {}).status().message(),
            "data_desc.name: OneMore reads binary files, not lines of text; it feeds a FileInstantDataset");
}

TEST_F(FileInstantTest, SoDoSeveralFilesAsTheyHoldWholeBatches) {
  ASSERT_TRUE(ConvertToInstant(Request(1500), {}).ok());
  EXPECT_GT(Parts().size(), 3U);
  EXPECT_EQ(ReadAll(*FileInstantDataset::Create(desc_, Parts(), DataFeedFactory::Builtin()).value()), TextBatches());
}

TEST_F(FileInstantTest, TheSizeOfTheBatchStandsInEveryRowAsPaddleWantsIt) {
  DataFeedDesc dense = testing::DescOf("label:uint64[1]");
  dense.set_batch_size(2);
  std::ofstream(dir_.path() + "/three") << "1 7\n1 8\n1 9\n";
  ConvertRequest request = Request();
  request.desc = &dense;
  request.files = {dir_.path() + "/three"};
  ASSERT_TRUE(ConvertToInstant(request, {}).ok());
  const std::string two = std::string("\x02\0\x02\0\0\0\0\0\0\0", 10);
  const std::string one = std::string("\x02\0\x01\0\0\0\0\0\0\0", 10);
  const auto id = [](char value) { return std::string(1, value) + std::string(7, '\0'); };
  EXPECT_EQ(ReadFile(Parts()[0]).value(), two + id(7) + two + id(8) + one + id(9));
}

TEST_F(FileInstantTest, AConversionThatFailedGoesOnWhereItStood) {
  // The command fails behind the rows of the first file as long as the flag is there.
  const std::string flag = dir_.path() + "/flag";
  std::ofstream(flag) << "";
  desc_.set_pipe_command("cat; test ! -e " + flag);
  const Result<ConvertReport> failed = ConvertToInstant(Request(1500), {});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("command exited with status 1"), std::string::npos);
  const size_t parts = Parts().size();
  EXPECT_GT(parts, 0U);
  fs::remove(flag);
  const Result<ConvertReport> report = ConvertToInstant(Request(1500), {});
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_TRUE(report->resumed);
  EXPECT_GT(report->stats.counters.at("trained_before"), 0);
  EXPECT_EQ(report->rows, 101);
  DataFeedDesc binary = desc_;
  binary.clear_pipe_command();
  EXPECT_EQ(ReadAll(*FileInstantDataset::Create(binary, Parts(), DataFeedFactory::Builtin()).value()), TextBatches());
}

TEST_F(FileInstantTest, AFolderWithRowsOfOtherInputIsLeftAlone) {
  ASSERT_TRUE(ConvertToInstant(Request(), {}).ok());
  desc_.set_batch_size(8);
  const Status other = ConvertToInstant(Request(), {}).status();
  EXPECT_EQ(other.code(), StatusCode::kInvalidConfig);
  EXPECT_NE(other.message().find("holds rows of other input"), std::string::npos) << other.message();
  fs::remove(dir_.path() + "/binary/part.state");
  EXPECT_NE(ConvertToInstant(Request(), {}).status().message().find("is none of this conversion's"), std::string::npos);
}

TEST_F(FileInstantTest, ARowThatTheFormatCannotHoldIsNamed) {
  const std::string path = dir_.path() + "/long";
  std::ofstream out(path);
  out << "1 1 1 1 1 1 3 1 2 3\n1 1 65536";
  for (int i = 0; i < 65536; ++i) out << " 5";
  out << " 1 1 3 1 2 3\n";
  out.close();
  ConvertRequest request = Request();
  request.files = {path};
  EXPECT_EQ(ConvertToInstant(request, {}).status().message(),
            path + ":2: slot \"a\" has 65536 values; the format holds at most 65535 a row");
  EXPECT_TRUE(Parts().empty());
}

TEST_F(FileInstantTest, WorkersShareOneFileAndSeeEveryBatchOnce) {
  ASSERT_TRUE(ConvertToInstant(Request(), {}).ok());
  auto dataset = FileInstantDataset::Create(desc_, Parts(), DataFeedFactory::Builtin()).value();
  PassOptions options;
  options.workers = 3;
  ASSERT_TRUE(dataset->BeginPass(options).ok());
  std::vector<std::vector<std::string>> seen(3);
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) {
      workers.emplace_back([&dataset, &seen, i] {
        while (true) {
          const BatchPtr batch = dataset->source(i).Next({}).value();
          if (batch == nullptr) return;
          seen[static_cast<size_t>(i)].push_back(BatchText(*batch));
        }
      });
    }
  }
  EXPECT_EQ(dataset->EndPass().value().rows, 101);
  std::vector<std::string> all;
  for (const auto& batches : seen) all.insert(all.end(), batches.begin(), batches.end());
  std::vector<std::string> expected = TextBatches();
  std::sort(all.begin(), all.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(all, expected);
}

TEST_F(FileInstantTest, AResumedPassReadsWhatWasNotTrained) {
  ASSERT_TRUE(ConvertToInstant(Request(), {}).ok());
  auto dataset = FileInstantDataset::Create(desc_, Parts(), DataFeedFactory::Builtin()).value();
  const std::vector<std::string> all = ReadAll(*dataset);
  ConsumedRanges trained;
  trained.Add({0, 0, 14});
  trained.Add({0, 21, 28});
  PassOptions options;
  options.trained = &trained;
  std::vector<std::string> expected = {all[2]};
  expected.insert(expected.end(), all.begin() + 4, all.end());
  EXPECT_EQ(ReadAll(*dataset, options), expected);
}

TEST_F(FileInstantTest, AFileThatIsCutOffWhileItIsReadIsAnError) {
  ASSERT_TRUE(ConvertToInstant(Request(), {}).ok());
  auto dataset = FileInstantDataset::Create(desc_, Parts(), DataFeedFactory::Builtin()).value();
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  ASSERT_TRUE(dataset->source(0).Next({}).ok());
  const auto size = fs::file_size(Parts()[0]);
  fs::resize_file(Parts()[0], 10);
  EXPECT_EQ(
      dataset->source(0).Next({}).status().message(),
      "\"" + Parts()[0] + "\" was " + std::to_string(size) + " bytes long and is now 10: it changed while it was read");
  EXPECT_FALSE(dataset->source(0).Next({}).ok());
  EXPECT_TRUE(dataset->EndPass().ok());
}

TEST_F(FileInstantTest, ASecondPassReadsTheFilesAgain) {
  ASSERT_TRUE(ConvertToInstant(Request(), {}).ok());
  auto dataset = FileInstantDataset::Create(desc_, Parts(), DataFeedFactory::Builtin()).value();
  EXPECT_EQ(ReadAll(*dataset), ReadAll(*dataset));
}

}  // namespace
}  // namespace millrace
