#include "dataset/in_memory_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "core/file.h"
#include "data_feed.pb.h"
#include "datafeed/batch_text.h"
#include "datafeed/row_sink.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

// Files in a folder of their own, and datasets over them.
class InMemoryDatasetTest : public ::testing::Test {
 protected:
  InMemoryDatasetTest() : folder_(TempDir::Create("in_memory_dataset").value()) {}

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    files_.push_back(path);
    return path;
  }

  // `count` lines "1 FIRST", "1 FIRST+1", ...
  static std::string Lines(int first, int count) {
    std::string text;
    for (int i = first; i < first + count; ++i) text += "1 " + std::to_string(i) + "\n";
    return text;
  }

  std::unique_ptr<InMemoryDataset> Make(DataFeedDesc desc, InMemoryDatasetOptions options = {}) {
    Result<std::unique_ptr<InMemoryDataset>> dataset = InMemoryDataset::Create(desc, files_, std::move(options));
    EXPECT_TRUE(dataset.ok()) << dataset.status().ToString();
    return std::move(*dataset);
  }

  static DataFeedDesc IdDesc(int batch_size) {
    DataFeedDesc desc = testing::DescOf("a:uint64");
    desc.set_batch_size(batch_size);
    return desc;
  }

  static std::unique_ptr<InMemoryDataset> Loaded(std::unique_ptr<InMemoryDataset> dataset) {
    const Result<PassStats> stats = dataset->LoadIntoMemory({});
    EXPECT_TRUE(stats.ok()) << stats.status().ToString();
    return dataset;
  }

  const TempDir folder_;
  std::vector<std::string> files_;
};

struct BatchCopy {
  std::vector<std::string> rows;
  std::vector<BatchSpan> spans;
  std::vector<RowOrigin> origins;
};

// What each worker got, one after another in this thread, which takes turns.
std::vector<std::vector<BatchCopy>> RunPass(InMemoryDataset& dataset, const PassOptions& options) {
  EXPECT_TRUE(dataset.BeginPass(options).ok());
  std::vector<std::vector<BatchCopy>> workers(static_cast<size_t>(options.workers));
  std::set<int> at_work;
  for (int i = 0; i < options.workers; ++i) at_work.insert(i);
  while (!at_work.empty()) {
    for (int i = 0; i < options.workers; ++i) {
      Result<BatchPtr> batch = dataset.source(i).Next({});
      EXPECT_TRUE(batch.ok());
      if (*batch == nullptr) {
        at_work.erase(i);
        continue;
      }
      BatchCopy copy;
      for (int row = 0; row < (*batch)->rows(); ++row) copy.rows.push_back(testing::RowText(**batch, row));
      copy.spans.assign((*batch)->spans().begin(), (*batch)->spans().end());
      copy.origins.assign((*batch)->origins().begin(), (*batch)->origins().end());
      workers[static_cast<size_t>(i)].push_back(std::move(copy));
    }
  }
  const Result<PassStats> stats = dataset.EndPass();
  EXPECT_TRUE(stats.ok());
  int64_t rows = 0;
  for (const auto& batches : workers) {
    for (const BatchCopy& batch : batches) rows += static_cast<int64_t>(batch.rows.size());
  }
  EXPECT_EQ(stats->rows, rows);
  return workers;
}

std::vector<std::string> RowsOf(const std::vector<std::vector<BatchCopy>>& workers) {
  std::vector<std::string> rows;
  for (const auto& batches : workers) {
    for (const BatchCopy& batch : batches) rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
  }
  return rows;
}

std::vector<std::string> RowsOfPass(InMemoryDataset& dataset, PassOptions options = {}) {
  return RowsOf(RunPass(dataset, options));
}

std::vector<std::string> Ids(int first, int count) {
  std::vector<std::string> rows;
  for (int i = first; i < first + count; ++i) rows.push_back("a=" + std::to_string(i));
  return rows;
}

TEST_F(InMemoryDatasetTest, KeepsFileAndLineOrderForAnyNumberOfThreads) {
  // Blocks are 1 MiB, so this makes several of each file; the line numbers tell whether they stand in order.
  constexpr int kRows = 400000;
  Write("part-0", Lines(1, kRows));
  Write("part-1", "");
  Write("part-2", Lines(kRows + 1, 3));
  Write("part-3", Lines(kRows + 4, kRows));
  for (const int threads : {1, 3}) {
    auto dataset = Make(IdDesc(1000), {.threads = threads});
    const Result<PassStats> stats = dataset->LoadIntoMemory({});
    ASSERT_TRUE(stats.ok()) << stats.status().ToString();
    EXPECT_EQ(stats->rows, 2 * kRows + 3);
    EXPECT_EQ(stats->lines, 2 * kRows + 3);
    EXPECT_EQ(stats->files, 4);
    EXPECT_EQ(LeftOutLine(*stats), "left out: 1 file without a line");
    EXPECT_EQ(dataset->MemoryDataSize(), 2 * kRows + 3);
    const std::vector<std::vector<BatchCopy>> workers = RunPass(*dataset, {});
    const std::vector<std::string> rows = RowsOf(workers);
    ASSERT_EQ(rows, Ids(1, 2 * kRows + 3)) << threads << " threads";
    const RowOrigin last = workers[0].back().origins.back();
    EXPECT_EQ(last.file, 3U);
    EXPECT_EQ(last.line, static_cast<uint64_t>(kRows));
    const RowOrigin middle = workers[0][kRows / 1000].origins[1];
    EXPECT_EQ(middle.file, 2U);
    EXPECT_EQ(middle.line, 2U);
  }
}

TEST_F(InMemoryDatasetTest, BatchesAreConsecutiveAndSpansArePositions) {
  Write("part-0", Lines(1, 7));
  auto dataset = Loaded(Make(IdDesc(3)));
  const auto workers = RunPass(*dataset, {});
  ASSERT_EQ(workers[0].size(), 3U);
  EXPECT_THAT(workers[0][0].rows, ElementsAre("a=1", "a=2", "a=3"));
  EXPECT_THAT(workers[0][1].rows, ElementsAre("a=4", "a=5", "a=6"));
  EXPECT_THAT(workers[0][2].rows, ElementsAre("a=7"));
  ASSERT_EQ(workers[0][1].spans.size(), 1U);
  EXPECT_EQ(workers[0][1].spans[0].source, 0U);
  EXPECT_EQ(workers[0][1].spans[0].begin, 3U);
  EXPECT_EQ(workers[0][1].spans[0].end, 6U);
}

TEST_F(InMemoryDatasetTest, DropLastLeavesOutTheBatchThatIsNotFull) {
  Write("part-0", Lines(1, 7));
  DataFeedDesc desc = IdDesc(3);
  desc.set_drop_last(true);
  auto dataset = Loaded(Make(desc));
  EXPECT_EQ(RowsOfPass(*dataset), Ids(1, 6));
}

TEST_F(InMemoryDatasetTest, HonoursTheBatchSizeWithMoreWorkersThanBatches) {
  Write("part-0", Lines(1, 6));
  for (const int queue_num : {0, 1, 3, 8}) {
    auto dataset = Loaded(Make(IdDesc(2), {.queue_num = queue_num}));
    for (int pass = 0; pass < 3; ++pass) {
      const auto workers = RunPass(*dataset, {.pass = pass, .workers = 8});
      int batches = 0;
      for (const auto& worker : workers) {
        for (const BatchCopy& batch : worker) {
          EXPECT_EQ(batch.rows.size(), 2U);
          ++batches;
        }
      }
      EXPECT_EQ(batches, 3);
      EXPECT_THAT(RowsOf(workers), UnorderedElementsAreArray(Ids(1, 6)));
    }
  }
}

TEST_F(InMemoryDatasetTest, OneWorkerMeetsTheBatchesInOrderWhateverTheChannels) {
  Write("part-0", Lines(1, 100));
  for (const int queue_num : {1, 4, 7}) {
    auto dataset = Loaded(Make(IdDesc(3), {.queue_num = queue_num}));
    RunPass(*dataset, {.workers = 5});  // leaves the blocks in another arrangement
    EXPECT_EQ(RowsOfPass(*dataset), Ids(1, 100)) << queue_num << " channels";
  }
}

// What is where: rows of the input channel, of each output channel, of each consume channel.
std::string Whereabouts(const InMemoryDataset& dataset) {
  const InMemoryDataset::ChannelRows rows = dataset.RowsInChannels();
  std::string text = std::to_string(rows.input) + " >";
  for (const int64_t count : rows.output) text += " " + std::to_string(count);
  text += " >";
  for (const int64_t count : rows.consume) text += " " + std::to_string(count);
  return text;
}

TEST_F(InMemoryDatasetTest, RowsTravelFromTheInputChannelToOutputAndConsume) {
  Write("part-0", Lines(1, 6));
  Write("part-1", Lines(7, 5));
  auto dataset = Make(IdDesc(2), {.threads = 2, .queue_num = 2});
  EXPECT_EQ(Whereabouts(*dataset), "0 > >");
  ASSERT_TRUE(dataset->LoadIntoMemory({}).ok());
  EXPECT_EQ(Whereabouts(*dataset), "11 > >");

  ASSERT_TRUE(dataset->BeginPass({}).ok());
  EXPECT_EQ(Whereabouts(*dataset), "0 > 6 5 > 0 0");
  BatchPtr batch = dataset->source(0).Next({}).value();
  EXPECT_EQ(Whereabouts(*dataset), "0 > 4 5 > 2 0");
  batch = dataset->source(0).Next({}).value();
  EXPECT_EQ(Whereabouts(*dataset), "0 > 4 3 > 2 2");
  while (batch != nullptr) batch = dataset->source(0).Next({}).value();
  EXPECT_EQ(Whereabouts(*dataset), "0 > 0 0 > 6 5");
  ASSERT_TRUE(dataset->EndPass().ok());
  EXPECT_EQ(Whereabouts(*dataset), "0 > 6 5 > 0 0") << "the swap carries the next pass";
  EXPECT_EQ(dataset->MemoryDataSize(), 11);

  ASSERT_TRUE(dataset->LocalShuffle(3).ok());
  EXPECT_EQ(Whereabouts(*dataset), "11 > 0 0 > 0 0") << "a shuffle brings all rows back";
  ASSERT_TRUE(dataset->LocalShuffle(4).ok());
  EXPECT_EQ(Whereabouts(*dataset), "11 > 0 0 > 0 0");
  const std::vector<std::string> shuffled = RowsOfPass(*dataset);
  EXPECT_THAT(shuffled, UnorderedElementsAreArray(Ids(1, 11)));
  EXPECT_EQ(Whereabouts(*dataset), "0 > 6 5 > 0 0");
  EXPECT_EQ(RowsOfPass(*dataset), shuffled) << "passes keep the order of the last shuffle";

  // A pass that is cut short leaves rows on both sides; the next one finds all of them.
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  batch = dataset->source(0).Next({}).value();
  ASSERT_TRUE(dataset->EndPass().ok());
  EXPECT_EQ(Whereabouts(*dataset), "0 > 2 0 > 4 5");
  EXPECT_EQ(RowsOfPass(*dataset), shuffled);

  ASSERT_TRUE(dataset->DynamicAdjustChannelNum(3).ok());
  ASSERT_TRUE(dataset->SetBatches(3, 1, true).ok());
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  EXPECT_EQ(Whereabouts(*dataset), "0 > 3 3 3 > 0 0 0") << "drop_last leaves two rows out";
  ASSERT_TRUE(dataset->EndPass().ok());

  dataset->ReleaseMemory();
  EXPECT_EQ(Whereabouts(*dataset), "0 > >");
  EXPECT_EQ(dataset->MemoryDataSize(), 0);
  ASSERT_TRUE(dataset->LoadIntoMemory({}).ok());
  EXPECT_EQ(Whereabouts(*dataset), "11 > >");
}

TEST_F(InMemoryDatasetTest, ALoadThatFailsLeavesNoRowsInTheInputChannel) {
  Write("part-0", Lines(1, 50) + "1 x\n");
  auto dataset = Make(IdDesc(2));
  EXPECT_FALSE(dataset->LoadIntoMemory({}).ok());
  EXPECT_EQ(Whereabouts(*dataset), "0 > >");
}

TEST_F(InMemoryDatasetTest, SlotsAreShuffledAlikeBeforeAndAfterRowsLeaveTheInputChannel) {
  Write("part-0", Lines(1, 20));
  const auto rows_of = [&](bool before, bool shuffles) {
    auto dataset = Loaded(Make(IdDesc(4)));
    if (!before) RowsOfPass(*dataset);
    EXPECT_TRUE(!shuffles || dataset->LocalShuffle(1).ok());
    EXPECT_TRUE(dataset->SlotsShuffle({"a"}, 5).ok());
    std::vector<std::string> rows = RowsOfPass(*dataset);
    std::sort(rows.begin(), rows.end());
    return rows;
  };
  const std::vector<std::string> rows = rows_of(true, false);
  EXPECT_NE(rows, Ids(1, 20));
  EXPECT_EQ(rows_of(false, false), rows);
  EXPECT_EQ(rows_of(true, true), rows);
  EXPECT_EQ(rows_of(false, true), rows);
}

TEST_F(InMemoryDatasetTest, WorkersInThreadsShareEveryRowOnce) {
  constexpr int kRows = 20000;
  Write("part-0", Lines(1, kRows));
  auto dataset = Loaded(Make(IdDesc(7), {.queue_num = 3}));
  for (int pass = 0; pass < 3; ++pass) {
    constexpr int kWorkers = 4;
    ASSERT_TRUE(dataset->BeginPass({.pass = pass, .workers = kWorkers}).ok());
    std::vector<std::vector<std::string>> got(kWorkers);
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kWorkers; ++i) {
        threads.emplace_back([&dataset, &rows = got[static_cast<size_t>(i)], i] {
          for (;;) {
            const Result<BatchPtr> batch = dataset->source(i).Next({});
            if (!batch.ok() || *batch == nullptr) return;
            for (int row = 0; row < (*batch)->rows(); ++row) rows.push_back(testing::RowText(**batch, row));
          }
        });
      }
    }
    ASSERT_TRUE(dataset->EndPass().ok());
    std::vector<std::string> all;
    for (const auto& rows : got) all.insert(all.end(), rows.begin(), rows.end());
    std::vector<std::string> expected = Ids(1, kRows);
    std::sort(all.begin(), all.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(all, expected);
  }
}

TEST_F(InMemoryDatasetTest, ShufflesBySeedAloneAndStartsFromLoadingOrder) {
  Write("part-0", Lines(1, 500));
  Write("part-1", Lines(501, 500));
  std::vector<std::string> first;
  for (const int threads : {1, 2, 5}) {
    auto dataset = Loaded(Make(IdDesc(64), {.threads = threads}));
    EXPECT_EQ(RowsOfPass(*dataset), Ids(1, 1000));
    ASSERT_TRUE(dataset->LocalShuffle(7).ok());
    const std::vector<std::string> seven = RowsOfPass(*dataset);
    EXPECT_NE(seven, Ids(1, 1000));
    EXPECT_THAT(seven, UnorderedElementsAreArray(Ids(1, 1000)));
    EXPECT_EQ(RowsOfPass(*dataset), seven) << "the order stays until the next shuffle";
    ASSERT_TRUE(dataset->LocalShuffle(8).ok());  // also after the first pass
    EXPECT_NE(RowsOfPass(*dataset), seven);
    ASSERT_TRUE(dataset->GlobalShuffle(7).ok());
    EXPECT_EQ(RowsOfPass(*dataset), seven);
    if (first.empty()) first = seven;
    EXPECT_EQ(seven, first) << threads << " threads";
  }
}

TEST_F(InMemoryDatasetTest, TheShuffleOfASeedIsTheSameOnEveryMachine) {
  Write("part-0", Lines(1, 10));
  auto dataset = Loaded(Make(IdDesc(10)));
  ASSERT_TRUE(dataset->LocalShuffle(1).ok());
  EXPECT_THAT(RowsOfPass(*dataset), ElementsAre("a=5", "a=8", "a=10", "a=4", "a=3", "a=2", "a=6", "a=1", "a=7", "a=9"));
}

TEST_F(InMemoryDatasetTest, ShufflesEveryPassWhenConfigured) {
  Write("part-0", Lines(1, 300));
  auto dataset = Loaded(Make(IdDesc(32), {.local_shuffle = true}));
  const std::vector<std::string> pass0 = RowsOfPass(*dataset, {.pass = 0, .seed = 5});
  const std::vector<std::string> pass1 = RowsOfPass(*dataset, {.pass = 1, .seed = 5});
  EXPECT_THAT(pass0, UnorderedElementsAreArray(Ids(1, 300)));
  EXPECT_THAT(pass1, UnorderedElementsAreArray(Ids(1, 300)));
  EXPECT_NE(pass0, pass1);
  EXPECT_NE(RowsOfPass(*dataset, {.pass = 0, .seed = 6}), pass0);
  EXPECT_EQ(RowsOfPass(*dataset, {.pass = 0, .seed = 5}), pass0) << "a pass does not depend on those before";
}

TEST_F(InMemoryDatasetTest, AResumedPassReadsTheUntrainedPositionsAlone) {
  Write("part-0", Lines(1, 20));
  auto dataset = Loaded(Make(IdDesc(4)));
  ConsumedRanges trained;
  trained.Add({0, 0, 4});
  trained.Add({0, 7, 9});
  trained.Add({0, 18, 20});
  const auto workers = RunPass(*dataset, {.trained = &trained});
  EXPECT_THAT(RowsOf(workers),
              ElementsAre("a=5", "a=6", "a=7", "a=10", "a=11", "a=12", "a=13", "a=14", "a=15", "a=16", "a=17", "a=18"));
  ASSERT_EQ(workers[0].size(), 3U);
  for (const BatchCopy& batch : workers[0]) {
    EXPECT_EQ(batch.rows.size(), 4U) << "batches are full across gaps";
    for (const BatchSpan& span : batch.spans) trained.Add(span);  // would fail on a position that comes twice
  }
  EXPECT_EQ(trained.TotalPositions(), 20U);
  EXPECT_TRUE(RowsOfPass(*dataset, {.trained = &trained}).empty());
}

TEST_F(InMemoryDatasetTest, RefusesToTrainWithoutLoadingAndToLoadTwice) {
  Write("part-0", Lines(1, 3));
  auto dataset = Make(IdDesc(2));
  const Status unloaded = dataset->BeginPass({});
  EXPECT_EQ(unloaded.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(unloaded.message(), HasSubstr("LoadIntoMemory"));
  EXPECT_FALSE(dataset->LocalShuffle(1).ok());
  ASSERT_TRUE(dataset->LoadIntoMemory({}).ok());
  const Result<PassStats> again = dataset->LoadIntoMemory({});
  EXPECT_EQ(again.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(again.status().message(), HasSubstr("3 rows"));
  EXPECT_EQ(dataset->PreloadIntoMemory({}).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(RowsOfPass(*dataset), Ids(1, 3));
}

TEST_F(InMemoryDatasetTest, ReleaseEmptiesAndAllowsLoadingAgain) {
  Write("part-0", Lines(1, 100));
  auto dataset = Loaded(Make(IdDesc(10)));
  EXPECT_GT(dataset->MemoryBytes(), 0);
  ASSERT_TRUE(dataset->LocalShuffle(3).ok());
  RunPass(*dataset, {});
  dataset->ReleaseMemory();
  EXPECT_EQ(dataset->MemoryDataSize(), 0);
  EXPECT_EQ(dataset->MemoryBytes(), 0);
  EXPECT_FALSE(dataset->BeginPass({}).ok());
  dataset->ReleaseMemory();
  ASSERT_TRUE(dataset->LoadIntoMemory({}).ok());
  EXPECT_EQ(RowsOfPass(*dataset), Ids(1, 100)) << "the shuffle went with the rows";
}

TEST_F(InMemoryDatasetTest, APassWaitsForThePreload) {
  Write("part-0", Lines(1, 50000));
  auto dataset = Make(IdDesc(1000));
  ASSERT_TRUE(dataset->PreloadIntoMemory({}).ok());
  EXPECT_EQ(dataset->PreloadIntoMemory({}).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(dataset->LoadIntoMemory({}).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(RowsOfPass(*dataset), Ids(1, 50000));
  EXPECT_FALSE(dataset->WaitPreloadDone().ok());
}

/// A file of no rows.
class NoRows final : public RowFile {
 public:
  Result<Got> Next(const std::stop_token&) override { return Got::kEnd; }
  std::span<const uint64_t> ids(SlotId) const override { return {}; }
  std::span<const float> floats(SlotId) const override { return {}; }
  const LineError& error() const override { return error_; }

 private:
  const LineError error_{};
};

/// MultiSlot text that knows no batches.
class PacksAlone final : public DataFeed, public PackingFeed {
 public:
  explicit PacksAlone(const SlotSchema& schema) : parser_(schema, {}) {}

  Status Attach(SlotBatch*) override { return Internal("rows were asked for as a batch"); }
  Status Detach() override { return Internal("rows were asked for as a batch"); }
  int rows() const override { return 0; }
  Result<LineResult> ParseLine(std::string_view) override { return Internal("rows were asked for as a batch"); }
  const LineError& error() const override { return parser_.error(); }
  const ValueCounters& counters() const override { return parser_.counters(); }
  Result<LineResult> PackLine(std::string_view line, RowSink& sink) override { return parser_.ParseLine(line, sink); }

 private:
  MultiSlotParser parser_;
};

TEST_F(InMemoryDatasetTest, AFeedThatPacksIsAskedForNoBatches) {
  Write("part-0", Lines(1, 20));
  InMemoryDatasetOptions options;
  const FeedKind::Maker maker = [](const SlotSchema& schema, const DataFeedDesc&) {
    return std::unique_ptr<DataFeed>(std::make_unique<PacksAlone>(schema));
  };
  ASSERT_TRUE(options.feeds.Add("packs", "packs alone", {maker}).ok());
  DataFeedDesc desc = IdDesc(7);
  desc.set_name("packs");
  EXPECT_EQ(RowsOfPass(*Loaded(Make(desc, options))), Ids(1, 20));
}

TEST_F(InMemoryDatasetTest, NewBatchesLeaveAloneWhatAPreloadReadsBy) {
  Write("part-0", "");
  std::promise<void> has_new_batches;
  std::atomic<int> batch_size = 0;
  const RowFileMaker maker = [&, has = has_new_batches.get_future().share()](
                                 const SlotSchema&, const DataFeedDesc& desc) -> Result<RowFileOpener> {
    return RowFileOpener([&batch_size, &desc, has](std::unique_ptr<ByteSource>, const std::string&) {
      has.wait();
      batch_size = desc.batch_size();
      return Result<std::unique_ptr<RowFile>>(std::make_unique<NoRows>());
    });
  };
  InMemoryDatasetOptions options;
  ASSERT_TRUE(options.feeds.AddRowFiles("none", "no rows", maker).ok());
  DataFeedDesc desc = IdDesc(10);
  desc.set_name("none");
  auto dataset = Make(desc, options);
  ASSERT_TRUE(dataset->PreloadIntoMemory({}).ok());
  EXPECT_TRUE(dataset->SetBatches(20, 1, false).ok());
  has_new_batches.set_value();
  ASSERT_TRUE(dataset->WaitPreloadDone().ok());
  EXPECT_EQ(batch_size, 10);
}

TEST_F(InMemoryDatasetTest, APreloadCanBeWaitedForReleasedStoppedAndDropped) {
  Write("part-0", Lines(1, 50000));
  auto dataset = Make(IdDesc(1000));
  ASSERT_TRUE(dataset->PreloadIntoMemory({}).ok());
  const Result<PassStats> stats = dataset->WaitPreloadDone();
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->rows, 50000);
  dataset->ReleaseMemory();

  ASSERT_TRUE(dataset->PreloadIntoMemory({}).ok());
  dataset->ReleaseMemory();
  EXPECT_EQ(dataset->MemoryDataSize(), 0);

  std::stop_source stop;
  stop.request_stop();
  ASSERT_TRUE(dataset->PreloadIntoMemory(stop.get_token()).ok());
  EXPECT_EQ(dataset->BeginPass({}).code(), StatusCode::kCancelled);
  EXPECT_EQ(dataset->MemoryDataSize(), 0);

  ASSERT_TRUE(dataset->PreloadIntoMemory({}).ok());
  dataset.reset();
}

TEST_F(InMemoryDatasetTest, ABadLineFailsTheLoadWithItsPlace) {
  Write("part-0", Lines(1, 10));
  const std::string bad = Write("part-1", Lines(11, 5) + "1 x\n" + Lines(17, 5));
  for (const int threads : {1, 2}) {
    auto dataset = Make(IdDesc(2), {.threads = threads});
    const Status status = dataset->LoadIntoMemory({}).status();
    EXPECT_EQ(status.code(), StatusCode::kBadData);
    EXPECT_THAT(status.message(),
                HasSubstr(bad + ":6:3: slot \"a\": expected value 1 of 1 to be an unsigned integer, " + "found \"x\""));
    EXPECT_EQ(dataset->MemoryDataSize(), 0);
    EXPECT_EQ(dataset->MemoryBytes(), 0);
    EXPECT_FALSE(dataset->BeginPass({}).ok());
  }
}

TEST_F(InMemoryDatasetTest, BadAndBlankLinesAreSkippedAndCountedAndKeepTheNumbersOfOthers) {
  Write("part-0", "\xEF\xBB\xBF" + Lines(1, 2) + "1 x\n\n2 5\n" + Lines(6, 1) + "1 7");
  DataFeedDesc desc = IdDesc(10);
  desc.mutable_bad_lines()->set_action(BadLinePolicy::SKIP);
  desc.mutable_bad_lines()->set_max_fraction(1);
  auto dataset = Make(desc);
  const Result<PassStats> stats = dataset->LoadIntoMemory({});
  ASSERT_TRUE(stats.ok()) << stats.status().ToString();
  EXPECT_EQ(stats->rows, 4);
  EXPECT_EQ(stats->lines, 7);
  EXPECT_EQ(stats->bad_lines, 2);
  EXPECT_EQ(stats->counters.at("bad_value"), 1);
  EXPECT_EQ(stats->counters.at("missing_values"), 1);
  EXPECT_EQ(stats->counters.at("blank_line"), 1);
  const auto workers = RunPass(*dataset, {});
  EXPECT_THAT(workers[0][0].rows, ElementsAre("a=1", "a=2", "a=6", "a=7"));
  std::vector<uint64_t> lines;
  for (const RowOrigin& origin : workers[0][0].origins) lines.push_back(origin.line);
  EXPECT_THAT(lines, ElementsAre(1, 2, 6, 7));
}

TEST_F(InMemoryDatasetTest, KeepsZerosUnlessTheConfigurationDropsThem) {
  Write("part-0", "2 0 9\n");
  EXPECT_THAT(RowsOfPass(*Loaded(Make(IdDesc(1)))), ElementsAre("a=0,9"));
  for (const DataFeedDesc::Zeros zeros : {DataFeedDesc::DROP, DataFeedDesc::FEED_DEFAULT}) {
    DataFeedDesc drop = IdDesc(1);
    drop.set_zeros(zeros);
    EXPECT_THAT(RowsOfPass(*Loaded(Make(drop))), ElementsAre("a=9"));
  }
}

TEST_F(InMemoryDatasetTest, AnAllowedEmptySlotHasNoValuesHereEither) {
  Write("part-0", "0\n1 0\n");
  DataFeedDesc desc = IdDesc(2);
  desc.set_empty_slot(DataFeedDesc::ALLOW);
  EXPECT_THAT(RowsOfPass(*Loaded(Make(desc))), ElementsAre("a=", "a=0"));
}

TEST_F(InMemoryDatasetTest, KeepsNamesAndContents) {
  Write("part-0", "1 id-1 1 text-1 1 5\n1 id-2 1 text-2 2 6 7\n");
  DataFeedDesc desc = IdDesc(2);
  desc.set_parse_ins_id(true);
  desc.set_parse_content(true);
  EXPECT_THAT(RowsOfPass(*Loaded(Make(desc))),
              ElementsAre("ins_id=id-1 content=text-1 a=5", "ins_id=id-2 content=text-2 a=6,7"));
}

TEST_F(InMemoryDatasetTest, CreateRefusesWhatCannotWork) {
  Write("part-0", Lines(1, 1));
  EXPECT_EQ(InMemoryDataset::Create(IdDesc(0), files_, {}).status().code(), StatusCode::kInvalidConfig);
  DataFeedDesc unknown = IdDesc(1);
  unknown.set_name("PaddleBoxDataFeed");
  EXPECT_THAT(InMemoryDataset::Create(unknown, files_, {}).status().message(), HasSubstr("PaddleBoxDataFeed"));
  DataFeedDesc queue_feed = IdDesc(1);
  queue_feed.set_name("MultiSlotDataFeed");
  EXPECT_EQ(
      InMemoryDataset::Create(queue_feed, files_, {}).status().message(),
      "data_desc.name: an InMemoryDataset reads with MultiSlotInMemoryDataFeed or SlotRecordInMemoryDataFeed, not with "
      "\"MultiSlotDataFeed\"");
  files_.push_back(folder_.path() + "/missing");
  EXPECT_THAT(InMemoryDataset::Create(IdDesc(1), files_, {}).status().message(), HasSubstr("missing"));
}

}  // namespace
}  // namespace millrace
