#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/feature_slots.h"
#include "core/file.h"
#include "data_feed.pb.h"
#include "datafeed/cell_records.h"
#include "datafeed/frame_feed.h"
#include "dataset/queue_dataset.h"
#include "dataset/statistics_pass.h"
#include "program/text_proto.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 10000;

template <class T>
void ReleaseNothing(T* given) {
  given->release = nullptr;
}

/// A frame of two columns, "n" and "word", in parts of 3,000 rows, that says when it is released.
struct MadeFrame {
  struct Part {
    std::vector<int64_t> numbers;
    std::vector<int64_t> offsets{0};
    std::string text;
    const void* number_buffers[2] = {};
    const void* text_buffers[3] = {};
    const void* no_buffers[1] = {};
    ArrowArray columns[2] = {};
    ArrowArray* children[2] = {&columns[0], &columns[1]};
  };
  ArrowSchema columns[2] = {{"l", "n", nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr},
                            {"U", "word", nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr}};
  ArrowSchema* children[2] = {&columns[0], &columns[1]};
  std::vector<std::unique_ptr<Part>> parts;
  int released = 0;

  template <class T>
  static void Release(T* given) {
    ++static_cast<MadeFrame*>(given->private_data)->released;
    given->release = nullptr;
  }

  std::shared_ptr<const DataFrame> Make(const std::string& name) {
    std::vector<ArrowOwner<ArrowArray>> arrays;
    for (int64_t begin = 0; begin < kRows; begin += 3000) {
      Part& part = *parts.emplace_back(std::make_unique<Part>());
      for (int64_t row = begin; row < std::min(begin + 3000, kRows); ++row) {
        part.numbers.push_back(row);
        part.text += "w" + std::to_string(row % 7);
        part.offsets.push_back(static_cast<int64_t>(part.text.size()));
      }
      const auto rows = static_cast<int64_t>(part.numbers.size());
      part.number_buffers[1] = part.numbers.data();
      part.text_buffers[1] = part.offsets.data();
      part.text_buffers[2] = part.text.data();
      part.columns[0] = {rows, 0, 0, 2, 0, part.number_buffers, nullptr, nullptr, nullptr, nullptr};
      part.columns[1] = {rows, 0, 0, 3, 0, part.text_buffers, nullptr, nullptr, nullptr, nullptr};
      ArrowArray array{rows, 0, 0, 1, 2, part.no_buffers, part.children, nullptr, Release<ArrowArray>, this};
      arrays.emplace_back(&array);
    }
    ArrowSchema schema{"+s", "", nullptr, 0, 2, children, nullptr, Release<ArrowSchema>, this};
    auto made = DataFrame::Create(ArrowOwner<ArrowSchema>(&schema), std::move(arrays), name);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *made : nullptr;
  }
};

DataFeedDesc Desc(const std::string& more = "") {
  DataFeedDesc desc;
  const Status read = ParseTextProto(R"(
      name: "csv" batch_size: 64
      feature { name: "n" id {} }
      feature { name: "word" hash {} })" +
                                         more,
                                     "desc", &desc);
  EXPECT_TRUE(read.ok()) << read.message();
  FillFeatureSlots(&desc);
  return desc;
}

/// The ids of slot "n" that workers got, sorted.
std::vector<uint64_t> RowsOf(QueueDataset& dataset, int workers) {
  std::vector<std::vector<uint64_t>> of_worker(static_cast<size_t>(workers));
  EXPECT_TRUE(dataset.BeginPass({.workers = workers}).ok());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) {
      threads.emplace_back([&dataset, i, &ids = of_worker[static_cast<size_t>(i)]] {
        while (true) {
          const Result<BatchPtr> batch = dataset.source(i).Next({});
          ASSERT_TRUE(batch.ok()) << batch.status().message();
          if (*batch == nullptr) break;
          const auto& some = (*batch)->column(0).ids;
          ids.insert(ids.end(), some.begin(), some.end());
        }
      });
    }
  }
  EXPECT_TRUE(dataset.EndPass().ok());
  std::vector<uint64_t> all;
  for (const std::vector<uint64_t>& some : of_worker) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(FrameRows, ReadersAndWorkersShareThemOutEachOnce) {
  MadeFrame made;
  {
    const DataFeedDesc desc = Desc();
    const auto feeds = FrameFeeds(DataFeedFactory::Builtin(), desc, {made.Make("data")});
    ASSERT_TRUE(feeds.ok()) << feeds.status().message();
    QueueDatasetOptions options;
    options.threads = 3;
    const auto dataset = QueueDataset::Create(desc, {FileOfFrame("data")}, *feeds, options);
    ASSERT_TRUE(dataset.ok()) << dataset.status().message();
    for (int pass = 0; pass < 2; ++pass) {
      const std::vector<uint64_t> ids = RowsOf(**dataset, 2);
      ASSERT_EQ(ids.size(), static_cast<size_t>(kRows));
      for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], i);
    }
  }
  EXPECT_EQ(made.released, 5);  // four parts and the schema
}

TEST(FrameRows, TeachFeaturesOnSeveralThreads) {
  MadeFrame made;
  const DataFeedDesc desc = Desc(
      "feature { name: \"place\" from: \"word\" vocabulary { max_size: 10 } }"
      "feature { name: \"scaled\" from: \"n\" standardize {} }");
  const auto feeds = FrameFeeds(DataFeedFactory::Builtin(), desc, {made.Make("data")});
  ASSERT_TRUE(feeds.ok()) << feeds.status().message();
  const std::vector<std::string> files = {FileOfFrame("data")};
  StatisticsPass pass;
  pass.desc = &desc;
  pass.files = &files;
  pass.feeds = &*feeds;
  pass.threads = 3;
  const std::unique_ptr<RankGroup> ranks = RankGroup::Solo();
  pass.ranks = ranks.get();
  FeatureStates states;
  const Status taken = TakeStatistics(pass, {}, {}, &states);
  ASSERT_TRUE(taken.ok()) << taken.message();
  EXPECT_EQ(states.rows(), kRows);
}

TEST(FrameRows, ABadValueIsNamedWithItsRow) {
  MadeFrame made;
  const DataFeedDesc desc = Desc("feature { name: \"number\" from: \"word\" }");
  const auto feeds = FrameFeeds(DataFeedFactory::Builtin(), desc, {made.Make("data")});
  ASSERT_TRUE(feeds.ok()) << feeds.status().message();
  const auto dataset = QueueDataset::Create(desc, {FileOfFrame("data")}, *feeds, {});
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  ASSERT_TRUE((*dataset)->BeginPass({.ordered = true}).ok());
  const Result<BatchPtr> batch = (*dataset)->source(0).Next({});
  EXPECT_FALSE(batch.ok());
  const Result<PassStats> ended = (*dataset)->EndPass();
  EXPECT_EQ(batch.status().message(), "data: row 0: slot \"number\": column \"word\": expected a number, found \"w0\"");
}

TEST(FrameRows, NullRowsAreFoundWhereTheirCountIsUnknown) {
  const auto make = [](std::vector<uint8_t> validity, int64_t offset) {
    const void* buffers[] = {validity.empty() ? nullptr : validity.data()};
    ArrowSchema schema{"+s", "", nullptr, 0, 0, nullptr, nullptr, ReleaseNothing<ArrowSchema>, nullptr};
    ArrowArray array{9 - offset, -1, offset, 1, 0, buffers, nullptr, nullptr, ReleaseNothing<ArrowArray>, nullptr};
    std::vector<ArrowOwner<ArrowArray>> arrays;
    arrays.emplace_back(&array);
    return DataFrame::Create(ArrowOwner<ArrowSchema>(&schema), std::move(arrays), "data").status();
  };
  EXPECT_TRUE(make({}, 0).ok());
  EXPECT_TRUE(make({0xFF, 0x01}, 0).ok());
  EXPECT_TRUE(make({0xFE, 0x01}, 1).ok());
  for (const Status& status : {make({0xFE, 0x01}, 0), make({0xFF, 0x00}, 3)}) {
    EXPECT_EQ(status.message(), "data: whole rows are null; leave them out");
  }
}

TEST(FrameRows, ChecksumsTellRowsApart) {
  MadeFrame one;
  MadeFrame other;
  MadeFrame third;
  const auto frame = one.Make("data");
  EXPECT_EQ(frame->Checksum(), other.Make("other")->Checksum());
  const auto changed = third.Make("data");
  third.parts.back()->numbers.back() = 0;
  EXPECT_NE(frame->Checksum(), changed->Checksum());
}

/// A file of cells of MadeFrame, and a command in place of Python that hands it on as it is.
class CellsFile {
 public:
  CellsFile() : dir_(TempDir::Create("millrace_cells_").value()) {
    std::ofstream(dir_.path() + "/cat.sh") << "#!/bin/sh\nexec cat\n";
    std::filesystem::permissions(dir_.path() + "/cat.sh", std::filesystem::perms::owner_all);
    ::setenv("MILLRACE_PYTHON", (dir_.path() + "/cat.sh").c_str(), 1);
    desc_ = Desc();
    desc_.set_name("parquet");
  }
  ~CellsFile() { ::unsetenv("MILLRACE_PYTHON"); }

  std::unique_ptr<QueueDataset> Open(const std::string& bytes) const {
    const std::string path = dir_.path() + "/rows.parquet";
    std::ofstream(path) << bytes;
    auto made = QueueDataset::Create(desc_, {path}, DataFeedFactory::Builtin(), {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::move(*made) : nullptr;
  }

 private:
  TempDir dir_;
  DataFeedDesc desc_;
};

TEST(CellRecords, AreTheRowsOfTheirFrame) {
  MadeFrame made;
  std::string bytes;
  const Status written =
      AppendCellRecords(*made.Make("data"), std::vector<std::string>{"n", "word"}, kNewTextRule, &bytes);
  ASSERT_TRUE(written.ok()) << written.message();
  const CellsFile file;
  const std::vector<uint64_t> ids = RowsOf(*file.Open(bytes), 2);
  ASSERT_EQ(ids.size(), static_cast<size_t>(kRows));
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], i);
}

TEST(CellRecords, AreRefusedWhereTheyAreDamaged) {
  MadeFrame made;
  std::string bytes;
  ASSERT_TRUE(AppendCellRecords(*made.Make("data"), std::vector<std::string>{"n", "word"}, kNewTextRule, &bytes).ok());
  const CellsFile file;
  const auto failure = [&file](const std::string& damaged) {
    const auto dataset = file.Open(damaged);
    EXPECT_TRUE(dataset->BeginPass({.ordered = true}).ok());
    while (true) {
      const Result<BatchPtr> batch = dataset->source(0).Next({});
      if (batch.ok() && *batch != nullptr) continue;
      (void)dataset->EndPass();
      return batch.ok() ? std::string() : batch.status().message();
    }
  };
  EXPECT_THAT(failure(bytes.substr(0, bytes.size() - 1)), HasSubstr("the file ends within rows"));
  EXPECT_THAT(failure("x" + bytes), HasSubstr("another version of Millrace"));
  std::string other = bytes;
  other[16] = '\x7f';  // the size of the first row
  EXPECT_THAT(failure(other), HasSubstr("a row ends behind its frame"));
  other = bytes;
  other[20] = '\x7f';  // that of its first cell
  EXPECT_THAT(failure(other), HasSubstr("record 1: the row ends within its column 0"));
  other[23] = '\x80';  // which is a list of many now
  EXPECT_THAT(failure(other), HasSubstr("record 1: the row ends within its column 0"));
}

TEST(CellRecords, AreOfColumnsThatAreThereOnce) {
  MadeFrame made;
  std::string bytes;
  const Status written =
      AppendCellRecords(*made.Make("data"), std::vector<std::string>{"n", "wrod"}, kNewTextRule, &bytes);
  EXPECT_EQ(written.message(), "data has no column \"wrod\"; did you mean \"word\"?");
}

}  // namespace
}  // namespace millrace
