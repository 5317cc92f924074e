#include "dataset/queue_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "core/delayed_stop.h"
#include "core/file.h"
#include "datafeed/batch_text.h"
#include "dataset/dataset_factory.h"
#include "dataset/pack.h"
#include "process_tree.h"
#include "reader/recordio.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A row's id and where it came from.
struct Seen {
  uint64_t id = 0;
  uint32_t file = 0;
  uint64_t line = 0;
  friend auto operator<=>(const Seen&, const Seen&) = default;
};

/// What all workers of a pass got.
struct Pass {
  std::vector<Seen> rows;       ///< in the order of their arrival
  std::vector<int> batch_rows;  ///< likewise
  ConsumedRanges ranges;
  PassStats stats;
  Status status;
};

class QueueDatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.emplace(TempDir::Create("millrace_queue_").value());
    desc_ = testing::DescOf("a:uint64");
    desc_.set_batch_size(10);
  }

  /// A file of `lines` lines with the ids first, first + 1, ...; every `blank_every`th line is blank instead.
  void AddFile(uint64_t first, int lines, int blank_every = 0) {
    const std::string path = dir_->path() + "/part-" + std::to_string(files_.size());
    std::ofstream file(path);
    for (int i = 0; i < lines; ++i) {
      const uint64_t id = first + static_cast<uint64_t>(i);
      if (blank_every > 0 && i % blank_every == blank_every - 1) {
        file << "\n";
      } else {
        file << "1 " << id << "\n";
        expected_.push_back({id, static_cast<uint32_t>(files_.size()), static_cast<uint64_t>(i) + 1});
      }
    }
    files_.push_back(path);
  }

  std::unique_ptr<QueueDataset> Make(int threads) {
    QueueDatasetOptions options;
    options.threads = threads;
    Result<std::unique_ptr<QueueDataset>> made =
        QueueDataset::Create(desc_, files_, DataFeedFactory::Builtin(), options);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return std::move(made).value();
  }

  /// Reads a pass with as many threads as it has workers; a worker stops after `max_batches` batches.
  static Pass Read(QueueDataset& dataset, const PassOptions& options, int max_batches = 1 << 30) {
    Pass pass;
    EXPECT_TRUE(dataset.BeginPass(options).ok());
    std::mutex mutex;
    {
      std::vector<std::jthread> workers;
      for (int w = 0; w < options.workers; ++w) {
        workers.emplace_back([&, w] {
          for (int i = 0; i < max_batches; ++i) {
            Result<BatchPtr> next = dataset.source(w).Next({});
            const std::lock_guard lock(mutex);
            if (!next.ok()) pass.status = next.status();
            if (!next.ok() || *next == nullptr) return;
            const SlotBatch& batch = **next;
            pass.batch_rows.push_back(batch.rows());
            for (int row = 0; row < batch.rows(); ++row) {
              const auto r = static_cast<size_t>(row);
              pass.rows.push_back({batch.ids(0)[r], batch.origins()[r].file, batch.origins()[r].line});
            }
            for (const BatchSpan& span : batch.spans()) pass.ranges.Add(span);
          }
        });
      }
    }
    pass.stats = dataset.EndPass().value();
    return pass;
  }

  static std::vector<Seen> Sorted(std::vector<Seen> rows) {
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  static int NotFull(const Pass& pass, int batch_size) {
    return static_cast<int>(std::count_if(pass.batch_rows.begin(), pass.batch_rows.end(),
                                          [batch_size](int rows) { return rows != batch_size; }));
  }

  std::optional<TempDir> dir_;
  DataFeedDesc desc_;
  std::vector<std::string> files_;
  std::vector<Seen> expected_;
};

TEST_F(QueueDatasetTest, EveryRowArrivesOnceForAnyNumbersOfThreads) {
  for (int f = 0; f < 7; ++f) AddFile(static_cast<uint64_t>(f) * 10000 + 1, 41 * f + 3, 11);
  for (const int readers : {1, 2, 8}) {
    for (const int workers : {1, 3}) {
      const auto dataset = Make(readers);
      for (int64_t p = 0; p < 2; ++p) {
        const Pass pass = Read(*dataset, {.pass = p, .workers = workers});
        ASSERT_TRUE(pass.status.ok()) << pass.status.ToString();
        ASSERT_EQ(Sorted(pass.rows), expected_);
        ASSERT_LE(NotFull(pass, 10), 1);
        ASSERT_EQ(pass.stats.rows, static_cast<int64_t>(expected_.size()));
        ASSERT_EQ(pass.stats.files, 7);
        // Every line, blank ones too, is in exactly one span (the ranges refuse one that is in two).
        ASSERT_EQ(pass.ranges.TotalPositions(), static_cast<uint64_t>(pass.stats.lines));
        if (readers == 1 && workers == 1) {
          ASSERT_EQ(pass.rows, expected_);
        }
      }
    }
  }
}

TEST_F(QueueDatasetTest, OrderedKeepsFilesAndLinesWhateverTheThreads) {
  for (int f = 0; f < 5; ++f) AddFile(static_cast<uint64_t>(f) * 10000 + 1, 500, 7);
  const auto dataset = Make(4);
  const Pass pass = Read(*dataset, {.ordered = true});
  EXPECT_EQ(pass.rows, expected_);
  EXPECT_LE(NotFull(pass, 10), 1);
}

TEST_F(QueueDatasetTest, OneLargeFileIsParsedByEveryReader) {
  AddFile(1, 400000);  // several blocks of 1 MiB
  desc_.set_batch_size(1000);
  const auto dataset = Make(3);
  const Pass pass = Read(*dataset, {.workers = 2});
  EXPECT_EQ(Sorted(pass.rows), expected_);
  EXPECT_EQ(NotFull(pass, 1000), 0);
  EXPECT_EQ(pass.stats.bytes, static_cast<int64_t>(std::ifstream(files_[0], std::ios::ate).tellg()));
}

TEST_F(QueueDatasetTest, ThreadsOfTheFeedCountBeforeTheTrainers) {
  AddFile(1, 1000);
  desc_.set_thread_num(1);
  const auto dataset = Make(8);
  EXPECT_EQ(Read(*dataset, {}).rows, expected_);  // in order: there is one reader
}

TEST_F(QueueDatasetTest, DropLastLeavesOutLessThanABatch) {
  for (int f = 0; f < 3; ++f) AddFile(static_cast<uint64_t>(f) * 100 + 1, 7);
  desc_.set_drop_last(true);
  const auto dataset = Make(2);
  const Pass pass = Read(*dataset, {});
  EXPECT_EQ(pass.batch_rows, (std::vector<int>{10, 10}));
  EXPECT_EQ(pass.stats.rows, 20);
}

TEST_F(QueueDatasetTest, AResumedPassTrainsTheRest) {
  for (int f = 0; f < 4; ++f) AddFile(static_cast<uint64_t>(f) * 10000 + 1, 250, 13);
  desc_.set_pipe_command("cat -");
  for (const int readers : {1, 3}) {
    for (const int batches : {0, 1, 7, 100}) {
      const auto dataset = Make(readers);
      const Pass before = Read(*dataset, {.workers = 2}, batches);
      const Pass after = Read(*dataset, {.workers = 2, .trained = &before.ranges});
      std::vector<Seen> both = before.rows;
      both.insert(both.end(), after.rows.begin(), after.rows.end());
      ASSERT_EQ(Sorted(both), expected_) << readers << " readers, stopped after " << batches;
      ASSERT_LE(NotFull(after, 10), 1);
      ConsumedRanges all = before.ranges;
      all.Merge(after.ranges);
      ASSERT_EQ(all.TotalPositions(), 1000U);
    }
  }
}

TEST_F(QueueDatasetTest, AnOrderedPassResumesInOrder) {
  for (int f = 0; f < 3; ++f) AddFile(static_cast<uint64_t>(f) * 10000 + 1, 105, 13);
  const auto dataset = Make(2);
  Pass pass = Read(*dataset, {.ordered = true}, 13);
  const Pass after = Read(*dataset, {.ordered = true, .trained = &pass.ranges});
  pass.rows.insert(pass.rows.end(), after.rows.begin(), after.rows.end());
  EXPECT_EQ(pass.rows, expected_);
}

TEST_F(QueueDatasetTest, AResumedPassDoesNotParseWhatWasTrained) {
  std::ofstream(dir_->path() + "/part-0") << "1 1\nnonsense\n1 3\n";
  files_ = {dir_->path() + "/part-0"};
  ConsumedRanges trained;
  trained.Add({0, 0, 2});
  const auto dataset = Make(1);
  const Pass pass = Read(*dataset, {.trained = &trained});
  EXPECT_TRUE(pass.status.ok()) << pass.status.ToString();
  EXPECT_EQ(pass.rows, (std::vector<Seen>{{3, 0, 3}}));
  EXPECT_EQ(pass.stats.counters.at("trained_before"), 2);
}

TEST_F(QueueDatasetTest, APassThatWasTrainedWholeIsEmpty) {
  AddFile(1, 25);
  const auto dataset = Make(2);
  const Pass all = Read(*dataset, {});
  const Pass none = Read(*dataset, {.trained = &all.ranges});
  EXPECT_TRUE(none.rows.empty());
  EXPECT_TRUE(none.batch_rows.empty());
}

TEST_F(QueueDatasetTest, TheFirstFailureEndsEveryWorkerAndEveryCommand) {
  for (int f = 0; f < 4; ++f) AddFile(static_cast<uint64_t>(f) * 10000 + 1, 3);
  desc_.set_pipe_command(
      "read -r one two; if [ $two = 20001 ]; then echo broken; else echo \"$one $two\"; exec sleep 1000; fi");
  const auto dataset = Make(4);
  ASSERT_TRUE(dataset->BeginPass({.workers = 3}).ok());
  {
    std::vector<std::jthread> workers;
    for (int w = 0; w < 3; ++w) {
      workers.emplace_back([&, w] {
        for (;;) {
          Result<BatchPtr> next = dataset->source(w).Next({});
          if (next.ok() && *next != nullptr) continue;
          EXPECT_THAT(
              next.status().message(),
              ::testing::StartsWith(files_[2] + ":1:1: slot \"a\": expected a count of values, found \"broken\" "
                                                "(line 1 of what `read -r one two; if"));
          return;
        }
      });
    }
  }
  ASSERT_TRUE(dataset->EndPass().ok());
  EXPECT_EQ(CountChildren(), 1);  // the guard, which the dataset keeps
}

TEST_F(QueueDatasetTest, RowsOfACommandThatGoesSilentAreHandedOn) {
  AddFile(1, 25);
  desc_.set_pipe_command("cat; exec sleep 1000");
  const auto dataset = Make(1);
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  for (int i = 0; i < 2; ++i) {
    const Result<BatchPtr> batch = dataset->source(0).Next({});
    ASSERT_TRUE(batch.ok() && *batch != nullptr) << i;
    EXPECT_EQ((*batch)->rows(), 10);
  }
  ASSERT_TRUE(dataset->EndPass().ok());
}

TEST_F(QueueDatasetTest, WhenLinesComeDoesNotDecideWhetherTooManyAreBad) {
  AddFile(1, 3000);
  desc_.mutable_bad_lines()->set_action(BadLinePolicy::SKIP);
  // 12 lines of 3000 are no more than one in a hundred, those of the first 1005 would be.
  const std::string command = "awk 'NR > 900 && NR <= 912 { print \"x\"; next } { print }'";
  for (const char* pause : {"", " | awk '{ print } NR == 1005 { fflush(); system(\"sleep 0.3\") }'"}) {
    desc_.set_pipe_command(command + pause);
    const Pass pass = Read(*Make(1), {.workers = 1});
    EXPECT_TRUE(pass.status.ok()) << pass.status.ToString();
    EXPECT_EQ(pass.stats.bad_lines, 12);
    EXPECT_EQ(pass.rows.size(), 2988U);
  }
}

TEST_F(QueueDatasetTest, NextHonoursAStop) {
  AddFile(1, 3);
  desc_.set_pipe_command("exec sleep 1000");
  const auto dataset = Make(1);
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(dataset->source(0).Next(stop.get_token()).status().code(), StatusCode::kCancelled);
  ASSERT_TRUE(dataset->EndPass().ok());
  EXPECT_EQ(CountChildren(), 1);
}

TEST_F(QueueDatasetTest, AnAbandonedPassLeavesNoChild) {
  AddFile(1, 300000);
  for (const char* command : {"cat -", "cat - | cat - | (cat; sleep 1000)", "exec sleep 1000"}) {
    desc_.set_pipe_command(command);
    auto dataset = Make(2);
    ASSERT_TRUE(dataset->BeginPass({}).ok());
    if (std::string(command) == "cat -") {
      ASSERT_TRUE(dataset->source(0).Next({}).ok());
    }
    dataset.reset();
    EXPECT_EQ(CountChildren(), 0) << command;
  }
}

TEST_F(QueueDatasetTest, AnAbandonedPackedFileLeavesNoChild) {
  std::string text;
  for (int i = 0; i < 500000; ++i) text += "1 " + std::to_string(i) + "\n";
  files_ = {dir_->path() + "/part-0"};
  std::ofstream(files_[0], std::ios::binary) << testing::Gzip(text);
  desc_.set_pipe_command("cat -");
  auto dataset = Make(2);
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  ASSERT_TRUE(dataset->source(0).Next({}).ok());
  dataset.reset();
  EXPECT_EQ(CountChildren(), 0);
}

TEST_F(QueueDatasetTest, ANamedPipeIsReadAndCanBeStopped) {
  files_ = {dir_->path() + "/fifo"};
  ASSERT_EQ(::mkfifo(files_[0].c_str(), 0600), 0);
  const auto dataset = Make(1);
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  {
    std::ofstream fifo(files_[0]);  // waits for the reader
    for (int i = 0; i < 10; ++i) fifo << "1 7\n";
  }
  Result<BatchPtr> batch = dataset->source(0).Next({});
  ASSERT_TRUE(batch.ok()) << batch.status().ToString();
  EXPECT_EQ((*batch)->rows(), 10);
  batch->reset();
  EXPECT_TRUE(dataset->EndPass().value().stage_seconds.contains("named_pipe"));
  ASSERT_TRUE(dataset->BeginPass({}).ok());  // nobody writes
  ASSERT_TRUE(dataset->EndPass().ok());
  QueueDatasetOptions options;
  options.reads_ahead = false;
  const auto alone = QueueDataset::Create(desc_, files_, DataFeedFactory::Builtin(), options).value();
  ASSERT_TRUE(alone->BeginPass({}).ok());
  std::stop_source stop;
  const DelayedStop soon(stop, std::chrono::milliseconds(20));
  EXPECT_EQ(alone->source(0).Next(stop.get_token()).status().message(), "stopped while \"" + files_[0] + "\" was read");
}

TEST_F(QueueDatasetTest, AFileThatIsCutOffAtALineEndWhileItIsReadIsAnError) {
  for (const char* command : {"", "awk 1"}) {
    files_.clear();
    AddFile(1000000, 400000);
    desc_.set_pipe_command(command);
    const std::unique_ptr<QueueDataset> dataset = Make(1);
    ASSERT_TRUE(dataset->BeginPass({.workers = 1}).ok());
    Result<BatchPtr> batch = dataset->source(0).Next({});
    ASSERT_TRUE(batch.ok());
    // Every line has ten bytes; the reader waits for the worker, in the first of three blocks.
    std::filesystem::resize_file(files_[0], 2000000);
    while (batch.ok() && *batch != nullptr) batch = dataset->source(0).Next({});
    EXPECT_EQ(batch.status().code(), StatusCode::kIo) << command;
    EXPECT_THAT(batch.status().message(),
                StartsWith("\"" + files_[0] + "\" changed while it was read, from 4000000 bytes to 2000000 after "));
    EXPECT_THAT(batch.status().message(), HasSubstr("\n  read it once it is whole"));
    EXPECT_TRUE(dataset->EndPass().ok());
  }
}

TEST_F(QueueDatasetTest, AFileThatIsReplacedBetweenPassesIsAnError) {
  AddFile(0, 2000);
  AddFile(5000, 30);
  const std::unique_ptr<QueueDataset> dataset = Make(2);
  EXPECT_EQ(Read(*dataset, {.workers = 1}).rows.size(), 2030U);
  EXPECT_EQ(Read(*dataset, {.workers = 1}).rows.size(), 2030U);
  std::ofstream(files_[0] + ".new") << "1 7\n";
  std::filesystem::rename(files_[0] + ".new", files_[0]);
  EXPECT_THAT(Read(*dataset, {.workers = 1}).status.message(),
              HasSubstr("\"" + files_[0] + "\" has changed since it was first read, from 12890 bytes to 4"));
}

TEST_F(QueueDatasetTest, AFileThatIsReplacedUnderItsNameWhileItIsReadIsReadWhole) {
  AddFile(1000000, 400000);
  const std::unique_ptr<QueueDataset> dataset = Make(1);
  ASSERT_TRUE(dataset->BeginPass({.workers = 1}).ok());
  int rows = 0;
  for (Result<BatchPtr> batch = dataset->source(0).Next({}); batch.ok() && *batch != nullptr;
       batch = dataset->source(0).Next({})) {
    if (rows == 0) std::ofstream(files_[0] + ".new") << "1 7\n";
    if (rows == 0) std::filesystem::rename(files_[0] + ".new", files_[0]);
    rows += (*batch)->rows();
  }
  EXPECT_EQ(rows, 400000);
  EXPECT_TRUE(dataset->EndPass().ok());
}

TEST_F(QueueDatasetTest, AFailedCommandNamesItsFileWhateverThatIsCalled) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_->path());
  std::ofstream("a") << "1 1\n";
  files_ = {"a"};
  desc_.set_pipe_command("cat; exit 4");
  const Pass pass = Read(*Make(1), {.workers = 1});
  std::filesystem::current_path(before);
  EXPECT_EQ(pass.status.message(), "a: command exited with status 4 after 1 rows");
}

TEST_F(QueueDatasetTest, ABadLineIsQuarantinedOnceHoweverManyPassesMeetIt) {
  AddFile(1, 100);
  std::ofstream(files_[0], std::ios::app) << "1 x\n";
  const std::string quarantine = dir_->path() + "/bad";
  desc_.mutable_bad_lines()->set_action(BadLinePolicy::QUARANTINE);
  desc_.mutable_bad_lines()->set_quarantine_path(quarantine);
  const auto dataset = Make(1);
  EXPECT_EQ(Read(*dataset, {.workers = 1}, 2).rows.size(), 20u);  // cut short: what it missed is still to be kept
  std::ofstream(quarantine, std::ios::trunc).flush();
  for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(Read(*dataset, {.workers = 1}).stats.bad_lines, 1);
  EXPECT_EQ(ReadFile(quarantine).value(),
            files_[0] + ":101:3: slot \"a\": expected value 1 of 1 to be an unsigned integer, found \"x\"\t1 x\n");
}

TEST_F(QueueDatasetTest, PassesFollowEachOtherWithOtherNumbersOfWorkers) {
  AddFile(1, 1000);
  const auto dataset = Make(2);
  for (const int workers : {1, 4, 2}) {
    const Pass pass = Read(*dataset, {.workers = workers});
    EXPECT_EQ(Sorted(pass.rows), expected_);
  }
}

TEST_F(QueueDatasetTest, StagesAreTimed) {
  AddFile(1, 1000);
  files_.push_back(files_[0] + ".gz");
  std::ofstream(files_[1], std::ios::binary) << testing::Gzip("1 1\n");
  {
    const Pass pass = Read(*Make(1), {});
    for (const char* stage : {"read", "decompress", "parse"}) EXPECT_GT(pass.stats.stage_seconds.at(stage), 0) << stage;
    for (const char* stage : {"wait_full", "wait_empty"}) EXPECT_GE(pass.stats.stage_seconds.at(stage), 0) << stage;
  }
  desc_.set_pipe_command("cat -");
  EXPECT_GT(Read(*Make(1), {}).stats.stage_seconds.at("pipe"), 0);
}

TEST_F(QueueDatasetTest, UnpackingBeforeTheCommandIsNotCountedAsTheCommand) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "1 " + std::to_string(i) + "\n";
  files_ = {dir_->path() + "/part-0"};
  std::ofstream(files_[0], std::ios::binary) << testing::Gzip(text);
  desc_.set_pipe_command("cat -");
  const auto start = std::chrono::steady_clock::now();
  const Pass packed = Read(*Make(1), {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_GT(packed.stats.stage_seconds.at("decompress"), 0);
  EXPECT_LT(packed.stats.stage_seconds.at("decompress"), seconds.count());
  std::ofstream(files_[0], std::ios::binary) << text;
  EXPECT_FALSE(Read(*Make(1), {}).stats.stage_seconds.contains("decompress"));
}

TEST_F(QueueDatasetTest, VectorsInAListOfARecordWereTakenForAsManyValues) {
  files_ = {dir_->path() + "/part-0"};
  RecordIOWriter writer = RecordIOWriter::Create(files_[0]).value();
  std::vector<LoDTensor> record(1);
  std::fill_n(record[0].values.Resize<int64_t>({2, 3}), 6, 1);
  record[0].lod = {0, 2};
  ASSERT_TRUE(writer.Append(record).ok());
  ASSERT_TRUE(writer.Finish().ok());
  desc_.set_name("recordio");
  EXPECT_EQ(Read(*Make(1), {}).status.message(),
            files_[0] +
                ": record 1: slot \"a\": expected a list of single values, found a tensor of [2, 3]; vectors are "
                "for a dense slot, whose shape says how many there are");
}

TEST(DataFeedFactory, AddsAndNames) {
  DataFeedFactory feeds = DataFeedFactory::Builtin();
  EXPECT_EQ(feeds.names(),
            (std::vector<std::string>{"MultiSlotDataFeed", "MultiSlotInMemoryDataFeed", "SlotRecordInMemoryDataFeed",
                                      "MultiSlotFileInstantDataFeed", "csv", "libsvm", "tfrecord", "ofrecord",
                                      "recordio", "jpeg", "json", "parquet", "arrow"}));
  const FeedKind::Maker none = [](const SlotSchema&, const DataFeedDesc&) { return std::unique_ptr<DataFeed>(); };
  EXPECT_TRUE(feeds.Add("MyFeed", "gives nothing", {none}).ok());
  EXPECT_EQ(feeds.Add("MyFeed", "gives nothing", {none}).message(),
            "a data feed of the class \"MyFeed\" is registered already");
}

// Examples that are left out by their label, lines of evaluations, bad and blank ones.
TEST_F(QueueDatasetTest, BatchesFollowTheRowsThatStayWhereverAPassBegins) {
  desc_ = testing::DescOf("a:uint64 label:uint64[1]");
  desc_.set_batch_size(10);
  desc_.mutable_bad_lines()->set_action(BadLinePolicy::SKIP);
  desc_.mutable_bad_lines()->set_max_fraction(1);
  uint64_t id = 0;
  for (const int lines : {237, 3, 0, 164}) {
    files_.push_back(dir_->path() + "/part-" + std::to_string(files_.size()));
    std::ofstream file(files_.back());
    for (int i = 0; i < lines; ++i, ++id) {
      if (id % 23 != 5) file << "1 " << (id % 17 == 3 ? "bad" : std::to_string(id)) << " 1 " << (id % 5 == 0);
      file << "\n";
    }
  }
  QueueDatasetOptions options;
  options.thinned = {"label", 0, 0.3, LineDraw(5, DrawnBy::kName)};
  options.held = LineShare(LineDraw(6, DrawnBy::kName), 0, 0.2, false);
  const auto dataset = QueueDataset::Create(desc_, files_, DataFeedFactory::Builtin(), options).value();
  PassOptions ordered{.ordered = true};
  const Pass whole = Read(*dataset, ordered);
  EXPECT_LE(NotFull(whole, 10), 1);
  EXPECT_EQ(Sorted(whole.rows), whole.rows);
  ASSERT_GT(whole.batch_rows.size(), 5U);
  for (size_t batches = 1; batches < whole.batch_rows.size(); ++batches) {
    Pass parts = Read(*dataset, ordered, static_cast<int>(batches));
    PassOptions rest = ordered;
    rest.trained = &parts.ranges;
    const Pass second = Read(*dataset, rest);
    parts.rows.insert(parts.rows.end(), second.rows.begin(), second.rows.end());
    parts.batch_rows.insert(parts.batch_rows.end(), second.batch_rows.begin(), second.batch_rows.end());
    EXPECT_EQ(parts.rows, whole.rows) << batches;
    EXPECT_EQ(parts.batch_rows, whole.batch_rows) << batches;
  }
}

/// A class at the level of files: a byte is a row of one id, or says what goes wrong.
class ByteRows final : public RowFile {
 public:
  explicit ByteRows(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {}

  Result<Got> Next(const std::stop_token& stop) override {
    char byte = 0;
    MR_ASSIGN(const size_t got, bytes_->Read({&byte, 1}, stop));
    if (got == 0) return Got::kEnd;
    if (byte == 'f') return BadData("an f");
    if (byte == 'c') return Cancelled("enough");
    if (byte == 't') throw std::logic_error("a t");
    error_.kind = LineErrorKind::kRefused;
    error_.slot = "a";
    error_.message = "a b";
    ids_[0] = static_cast<uint64_t>(byte);
    return byte == 'b' ? Got::kBad : Got::kRow;
  }
  std::span<const uint64_t> ids(SlotId) const override { return ids_; }
  std::span<const float> floats(SlotId) const override { return {}; }
  const LineError& error() const override { return error_; }

 private:
  const std::unique_ptr<ByteSource> bytes_;
  uint64_t ids_[1] = {};
  LineError error_;
};

TEST_F(QueueDatasetTest, AClassAtTheLevelOfFilesGivesRows) {
  DataFeedFactory feeds = DataFeedFactory::Builtin();
  const RowFileMaker maker = [](const SlotSchema&, const DataFeedDesc& desc) -> Result<RowFileOpener> {
    if (desc.attrs_size() > 0) return InvalidConfig("no attributes");
    return RowFileOpener([](std::unique_ptr<ByteSource> bytes, const std::string&) {
      return Result<std::unique_ptr<RowFile>>(std::make_unique<ByteRows>(std::move(bytes)));
    });
  };
  ASSERT_TRUE(feeds.AddRowFiles("bytes", "a byte a row", maker).ok());
  EXPECT_FALSE(feeds.AddRowFiles("bytes", "a byte a row", maker).ok());
  EXPECT_FALSE(feeds.ReadsText("bytes"));
  desc_.set_name("bytes");
  files_ = {dir_->path() + "/part-0"};
  const auto failure = [&](const std::string& bytes, int max_bad) {
    std::ofstream(files_[0]) << bytes;
    desc_.mutable_bad_lines()->set_action(max_bad > 0 ? BadLinePolicy::SKIP : BadLinePolicy::FAIL);
    desc_.mutable_bad_lines()->set_max_fraction(1);
    const auto dataset = QueueDataset::Create(desc_, files_, feeds, {}).value();
    EXPECT_TRUE(dataset->BeginPass({.workers = 1, .ordered = true}).ok());
    std::string ids;
    for (;;) {
      const Result<BatchPtr> batch = dataset->source(0).Next({});
      if (!batch.ok()) return ids + batch.status().message();
      if (*batch == nullptr) return ids;
      for (const uint64_t id : (*batch)->ids(0)) ids += static_cast<char>(id);
    }
  };
  const std::string of = files_[0] + ": ";
  EXPECT_EQ(failure("xyz", 0), "xyz");
  EXPECT_EQ(failure("", 0), "");
  EXPECT_EQ(failure("xbz", 0), of + "record 2: slot \"a\": a b");
  EXPECT_EQ(failure("xbz", 1), "xz");
  EXPECT_EQ(failure("xbf", 1), of + "record 3: an f");
  EXPECT_EQ(failure("xc", 1), of + "record 2: enough");
  EXPECT_EQ(
      failure("xt", 1),
      of + "data_desc.name: data feed \"bytes\" threw std::logic_error: a t after 1 rows; last record incomplete");
  desc_.add_attrs();
  EXPECT_EQ(QueueDataset::Create(desc_, files_, feeds, {}).status().message(), "no attributes");
}

}  // namespace
}  // namespace millrace
