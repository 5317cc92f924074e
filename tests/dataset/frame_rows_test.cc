#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/feature_slots.h"
#include "data_feed.pb.h"
#include "datafeed/frame_feed.h"
#include "dataset/queue_dataset.h"
#include "dataset/statistics_pass.h"
#include "program/text_proto.h"

namespace millrace {
namespace {

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
  FeatureStates states;
  const Status taken = TakeStatistics(pass, {}, &states);
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

}  // namespace
}  // namespace millrace
