// Ranks that read the files of a job together: what all of them hand out is each line exactly once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"
#include "core/file.h"
#include "core/hash.h"
#include "datafeed/batch_text.h"
#include "dataset/dataset_factory.h"
#include "dataset/pack.h"
#include "dataset/queue_dataset.h"
#include "ranks/rank_file_queue.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

/// A row's id and its place in the whole list.
struct SharedRow {
  uint64_t id = 0;
  uint32_t file = 0;
  uint64_t line = 0;
  friend auto operator<=>(const SharedRow&, const SharedRow&) = default;
};

/// What a rank was handed in a pass.
struct SharedPass {
  std::vector<SharedRow> rows;
  ConsumedRanges ranges;
  PassStats stats;
};

/// How ranks read.
struct SharedReading {
  int readers = 1;  ///< threads a rank; 0: its worker reads for itself
  int workers = 1;
  int64_t passes = 1;
  int most_batches = 1 << 30;  ///< of a worker, after which it stops
  const ConsumedRanges* trained = nullptr;
};

class SharedFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.emplace(TempDir::Create("millrace_shared_files_").value());
    desc_ = testing::DescOf("a:uint64");
    desc_.set_batch_size(7);
  }

  /// The last line is a row: a blank one behind the last batch is of none.
  void AddFile(int lines, int blank_every = 0, bool is_packed = false) {
    const auto file = static_cast<uint32_t>(files_.size());
    std::string text;
    for (int i = 0; i < lines; ++i) {
      ++lines_;
      if (blank_every > 0 && i % blank_every == 1 && i + 1 < lines) {
        text += "\n";
        continue;
      }
      const uint64_t id = uint64_t{file} * 100000 + static_cast<uint64_t>(i) + 1;
      text += "1 " + std::to_string(id) + "\n";
      expected_.push_back({id, file, static_cast<uint64_t>(i) + 1});
    }
    files_.push_back(dir_->path() + "/part-" + std::to_string(file) + (is_packed ? ".gz" : ""));
    std::ofstream(files_.back()) << (is_packed ? testing::Gzip(text) : text);
  }
  /// Uneven, empty, packed and blank ones.
  void AddFiles(uint64_t seed) {
    for (uint64_t i = 0; i < 9; ++i) {
      const uint64_t number = HashedNumber(seed, i);
      AddFile(i % 4 == 1 ? 0 : static_cast<int>(number % 60), number % 3 == 0 ? 5 : 0, number % 2 == 0);
    }
    AddFile(300);
  }

  std::unique_ptr<QueueDataset> Make(int readers, const FileQueueOfPass& shared_files) const {
    QueueDatasetOptions options;
    options.threads = readers;
    options.reads_ahead = readers > 0;
    options.shared_files = shared_files;
    auto made = QueueDataset::Create(desc_, files_, DataFeedFactory::Builtin(), options);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return std::move(made).value();
  }

  static void Take(BatchSource& source, const SharedReading& reading, std::mutex* mutex, SharedPass* pass) {
    for (int i = 0; i < reading.most_batches; ++i) {
      const Result<BatchPtr> next = source.Next({});
      ASSERT_TRUE(next.ok()) << next.status().ToString();
      if (*next == nullptr) return;
      const SlotBatch& batch = **next;
      const std::lock_guard lock(*mutex);
      for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) {
        pass->rows.push_back({batch.ids(0)[row], batch.origins()[row].file, batch.origins()[row].line});
      }
      for (const BatchSpan& span : batch.spans()) pass->ranges.Add(span);
    }
  }

  /// Reads all passes as one rank. Ranks wait for each other at the beginning and the end alone.
  void ReadAsRank(Communicator& communicator, const SharedReading& reading, std::vector<SharedPass>* passes) const {
    RankCalls calls(communicator);
    RankFileQueue files(calls, communicator.size());
    const auto dataset = Make(reading.readers, [&](int64_t pass) { return files.OfPass(pass, files_.size()); });
    ASSERT_TRUE(communicator.Barrier().ok());
    for (int64_t p = 0; p < reading.passes; ++p) {
      SharedPass& pass = passes->emplace_back();
      ASSERT_TRUE(dataset->BeginPass({.pass = p, .workers = reading.workers, .trained = reading.trained}).ok());
      std::mutex mutex;
      if (reading.workers == 1) {
        Take(dataset->source(0), reading, &mutex, &pass);
      } else {
        std::vector<std::jthread> workers;
        for (int w = 0; w < reading.workers; ++w) {
          workers.emplace_back([&, w] { Take(dataset->source(w), reading, &mutex, &pass); });
        }
      }
      const Result<PassStats> stats = dataset->EndPass();
      ASSERT_TRUE(stats.ok()) << stats.status().ToString();
      pass.stats = *stats;
    }
    ASSERT_TRUE(communicator.Barrier().ok());
  }

  /// By rank, then by pass.
  using OfRanks = std::vector<std::vector<SharedPass>>;

  OfRanks ReadOnThreads(int ranks, const SharedReading& reading) const {
    OfRanks read(static_cast<size_t>(ranks));
    OnRanks(ranks, [&](Communicator& communicator) {
      ReadAsRank(communicator, reading, &read[static_cast<size_t>(communicator.rank())]);
    });
    return read;
  }

  OfRanks ReadSimulated(int ranks, uint64_t seed, SharedReading reading) const {
    OfRanks read(static_cast<size_t>(ranks));
    reading.readers = 0;  // a simulated rank has one thread
    SimulatedCluster cluster({.size = ranks, .seed = seed, .longest_delay = static_cast<int64_t>(seed % 25)});
    const Status ran = cluster.Run([&](Communicator& communicator) {
      ReadAsRank(communicator, reading, &read[static_cast<size_t>(communicator.rank())]);
    });
    EXPECT_TRUE(ran.ok()) << ran.ToString();
    return read;
  }

  /// What all ranks were handed in a pass, and that no position is in two of them.
  static SharedPass Together(const OfRanks& read, size_t pass) {
    SharedPass all;
    for (const std::vector<SharedPass>& of_rank : read) {
      const SharedPass& part = of_rank.at(pass);
      all.rows.insert(all.rows.end(), part.rows.begin(), part.rows.end());
      all.ranges.Merge(part.ranges);
      all.stats.files += part.stats.files;
      all.stats.lines += part.stats.lines;
    }
    std::sort(all.rows.begin(), all.rows.end());
    return all;
  }

  std::optional<TempDir> dir_;
  DataFeedDesc desc_;
  std::vector<std::string> files_;
  std::vector<SharedRow> expected_;  ///< sorted, as files and ids ascend
  uint64_t lines_ = 0;
};

TEST_F(SharedFilesTest, EachLineIsReadOnceAPass) {
  AddFiles(1);
  for (const int ranks : {1, 2, 3, 5}) {
    for (const int readers : {1, 3}) {
      const OfRanks read = ReadOnThreads(ranks, {.readers = readers, .workers = 2, .passes = 3});
      for (size_t p = 0; p < 3; ++p) {
        const SharedPass pass = Together(read, p);
        EXPECT_EQ(pass.rows, expected_) << ranks << " ranks, pass " << p;
        EXPECT_EQ(pass.ranges.TotalPositions(), lines_);
        EXPECT_EQ(pass.stats.files, static_cast<int64_t>(files_.size()));
        EXPECT_EQ(pass.stats.lines, static_cast<int64_t>(lines_));
      }
    }
  }
}

TEST_F(SharedFilesTest, EachLineIsReadOnceWhateverTheNetworkDelays) {
  AddFiles(2);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const int ranks = std::vector<int>{2, 3, 5}[seed % 3];
    const OfRanks read = ReadSimulated(ranks, seed, {.passes = 2});
    for (size_t p = 0; p < 2; ++p) ASSERT_EQ(Together(read, p).rows, expected_) << "pass " << p;
  }
}

TEST_F(SharedFilesTest, AnotherNumberOfRanksReadsWhatWasLeft) {
  AddFiles(3);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const int before = std::vector<int>{2, 3, 5, 1}[seed % 4];
    const int after = std::vector<int>{3, 1, 2, 5}[HashedNumber(1, seed) % 4];
    const SharedPass first = Together(ReadSimulated(before, seed, {.most_batches = static_cast<int>(seed % 9)}), 0);
    const SharedPass second = Together(ReadSimulated(after, seed, {.trained = &first.ranges}), 0);
    std::vector<SharedRow> both = first.rows;
    both.insert(both.end(), second.rows.begin(), second.rows.end());
    std::sort(both.begin(), both.end());
    ASSERT_EQ(both, expected_);
    ConsumedRanges all = first.ranges;
    all.Merge(second.ranges);
    ASSERT_EQ(all.TotalPositions(), lines_);
  }
}

TEST_F(SharedFilesTest, ThreadsOfRanksGoOnWithWhatWasLeftToo) {
  AddFiles(4);
  for (const int batches : {0, 1, 6}) {
    const SharedPass first = Together(ReadOnThreads(3, {.readers = 2, .workers = 2, .most_batches = batches}), 0);
    const SharedPass second = Together(ReadOnThreads(2, {.readers = 3, .workers = 2, .trained = &first.ranges}), 0);
    std::vector<SharedRow> both = first.rows;
    both.insert(both.end(), second.rows.begin(), second.rows.end());
    std::sort(both.begin(), both.end());
    EXPECT_EQ(both, expected_);
  }
}

TEST_F(SharedFilesTest, MoreRanksThanFilesGetNothingToReadOnSomeOfThem) {
  AddFile(20);
  AddFile(0);
  const OfRanks read = ReadOnThreads(5, {});
  EXPECT_EQ(Together(read, 0).rows, expected_);
  EXPECT_GE(std::count_if(read.begin(), read.end(), [](const auto& rank) { return rank[0].stats.files == 0; }), 3);
}

TEST_F(SharedFilesTest, ACommandOfTheNextFileIsNotStartedBeforeItsTurn) {
  desc_.set_pipe_command("cat -");
  AddFile(100);
  AddFile(100);
  // Of two that share a queue by hand: this one's reader has its channel full within file 0.
  LocalFileQueue numbers;
  struct Borrowed final : FileQueue {
    explicit Borrowed(FileQueue& queue) : from(&queue) {}
    Result<size_t> Next(FileTurn turn, const std::stop_token& stop) override { return from->Next(turn, stop); }
    FileQueue* from;
  };
  const auto dataset = Make(1, [&](int64_t) { return std::make_unique<Borrowed>(numbers); });
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  ASSERT_TRUE(dataset->source(0).Next({}).value() != nullptr);
  EXPECT_EQ(numbers.Next(FileTurn::kLater, {}).value(), 1U);
  ASSERT_TRUE(dataset->EndPass().ok());
}

TEST_F(SharedFilesTest, ALostRankEndsThePassOfOthers) {
  AddFiles(5);
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(1));
  RankFileQueue files(calls, 2);
  const auto dataset = Make(2, [&](int64_t pass) { return files.OfPass(pass, files_.size()); });
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  cluster.Lose(0);
  const Status status = dataset->source(0).Next({}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr("rank 0"));
  EXPECT_TRUE(dataset->EndPass().ok());
}

TEST_F(SharedFilesTest, APassEndsWhileARankDoesNotAnswer) {
  AddFiles(6);
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(1));
  RankFileQueue files(calls, 2);
  const auto dataset = Make(2, [&](int64_t pass) { return files.OfPass(pass, files_.size()); });
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  EXPECT_TRUE(dataset->EndPass().ok());
}

TEST_F(SharedFilesTest, DatasetsThatReadAloneRefuseToShare) {
  AddFile(3);
  DatasetSettings settings;
  settings.shared_files = [](int64_t) { return std::make_unique<LocalFileQueue>(); };
  EXPECT_FALSE(settings.ForEvaluation({}, -1).shared_files);
  const DatasetFactory factory = DatasetFactory::Builtin();
  for (const char* name : {"InMemoryDataset", "FileInstantDataset"}) {
    const Status status = factory.Create(name, desc_, files_, DataFeedFactory::Builtin(), settings).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig) << name;
    EXPECT_THAT(status.message(), HasSubstr("share their files read them with a QueueDataset")) << name;
  }
}

}  // namespace
}  // namespace millrace
