// Rows of all ranks, shuffled among each other: any number of ranks comes to the same batches.

#include "dataset/row_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"
#include "core/file.h"
#include "core/hash.h"
#include "datafeed/batch_text.h"
#include "dataset/dataset_factory.h"
#include "dataset/stream_dataset.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr int kStreams = 6;
constexpr uint64_t kJobSeed = 11;

/// The batches of a pass by stream: their rows with the places, and where the positions stand.
using StreamBatches = std::map<int, std::vector<std::string>>;

struct ExchangeReading {
  RowTargets targets{.seed = kJobSeed, .streams = kStreams};
  int64_t most_rows = 0;
  size_t most_bytes = size_t{64} << 20;
  InMemoryRows rows = {};
  int64_t passes = 1;
  int most_batches = 1 << 30;  ///< of a stream, after which it stops
  const ConsumedRanges* trained = nullptr;
};

class RowExchangeTest : public ::testing::Test {
 protected:
  RowExchangeTest() : desc_(testing::DescOf("a:uint64 uid:uint64 x:float")) {
    desc_.set_batch_size(4);
    desc_.set_empty_slot(DataFeedDesc::ALLOW);
  }

  void AddFile(int lines) {
    const auto file = static_cast<uint64_t>(files_.size());
    files_.push_back(dir_.path() + "/part-" + std::to_string(file));
    std::ofstream out(files_.back());
    for (int i = 0; i < lines; ++i) {
      const uint64_t n = ++rows_;
      if (desc_.parse_ins_id()) out << "1 name" << n / 2 << " ";
      if (desc_.parse_content()) out << "1 content-" << n << " ";
      if (desc_.parse_logkey()) {
        char key[40];
        std::snprintf(key, sizeof(key), "%032llx", static_cast<unsigned long long>(n));
        out << "1 " << key << " ";
      }
      const uint64_t uid = HashedNumber(3, n) % 20;
      out << (n % 3 == 0 ? "2 " + std::to_string(n) + " " + std::to_string(n << 40U) : "1 " + std::to_string(n));
      out << (uid == 0 ? " 0" : " 1 " + std::to_string(uid)) << " 1 " << n << ".5\n";
    }
  }
  /// Uneven ones, one without a line; more streams than files.
  void AddFiles() {
    for (const int lines : {37, 0, 90, 5, 61}) AddFile(lines);
  }

  Result<std::unique_ptr<Dataset>> Make(RankGroup& ranks, const ExchangeReading& reading) const {
    DatasetSettings settings;
    settings.local_shuffle = true;
    settings.rows = reading.rows;
    settings.rows.are_exchanged = true;
    const auto [first, count] = ranks.ShareOf(kStreams);
    StreamShare share{.streams = kStreams, .first = first, .count = count, .in_memory = true};
    share.shuffle = RowShuffle{&ranks, reading.targets, reading.most_rows, reading.most_bytes};
    return StreamDataset::Create(SlotSchema::Create(desc_).value(), files_, share, [&](std::vector<std::string> some) {
      return DatasetFactory::Builtin().Create("InMemoryDataset", desc_, std::move(some), DataFeedFactory::Builtin(),
                                              settings);
    });
  }

  /// Reads the passes as one rank, and adds what its streams gave of the last one.
  void ReadAsRank(Communicator& communicator, const ExchangeReading& reading, StreamBatches* batches,
                  ConsumedRanges* ranges, PassStats* stats) const {
    RankGroup ranks(communicator);
    Result<std::unique_ptr<Dataset>> made = Make(ranks, reading);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    const std::unique_ptr<Dataset> dataset = std::move(made).value();
    const auto [first, count] = ranks.ShareOf(kStreams);
    ASSERT_TRUE(dynamic_cast<InMemoryControl&>(*dataset).LoadIntoMemory({}).ok());
    for (int64_t pass = 0; pass < reading.passes; ++pass) {
      const Status begun = dataset->BeginPass({.pass = pass, .seed = kJobSeed, .trained = reading.trained});
      ASSERT_TRUE(begun.ok()) << begun.ToString();
      for (int s = first; s < first + count; ++s) {
        std::vector<std::string>& texts = (*batches)[s];
        texts.clear();
        for (int i = 0; i < reading.most_batches; ++i) {
          const BatchPtr batch = dataset->source(s - first).Next({}).value();
          if (batch == nullptr) break;
          texts.push_back(TextOf(*batch));
          if (pass + 1 < reading.passes) continue;
          for (const BatchSpan& span : batch->spans()) ranges->Add(span);
        }
      }
      *stats = dataset->EndPass().value();
    }
    ASSERT_EQ(dataset->files(), files_);
  }

  static std::string TextOf(const SlotBatch& batch) {
    std::string text;
    for (int row = 0; row < batch.rows(); ++row) {
      const RowOrigin& origin = batch.origins()[static_cast<size_t>(row)];
      text +=
          testing::RowText(batch, row) + " @" + std::to_string(origin.file) + ":" + std::to_string(origin.line) + " | ";
    }
    for (const BatchSpan& span : batch.spans()) {
      text += std::to_string(span.source) + " " + std::to_string(span.begin) + "-" + std::to_string(span.end) + " ";
    }
    return text;
  }

  struct Read {
    StreamBatches batches;
    ConsumedRanges ranges;
    std::map<std::string, int64_t> counters;
    int64_t rows = 0;
  };
  template <class Run>
  Read ReadOn(int ranks, const ExchangeReading& reading, const Run& run) const {
    const auto count = static_cast<size_t>(ranks);
    std::vector<Read> parts(count);
    std::vector<PassStats> stats(count);
    run([&](Communicator& communicator) {
      const auto r = static_cast<size_t>(communicator.rank());
      ReadAsRank(communicator, reading, &parts[r].batches, &parts[r].ranges, &stats[r]);
    });
    Read all;
    for (size_t r = 0; r < count; ++r) {
      all.batches.merge(parts[r].batches);
      all.ranges.Merge(parts[r].ranges);
      all.rows += stats[r].rows;
      for (const auto& [kind, n] : stats[r].counters) all.counters[kind] += n;
    }
    EXPECT_EQ(all.batches.size(), static_cast<size_t>(kStreams));
    return all;
  }
  Read ReadOnThreads(int ranks, const ExchangeReading& reading) const {
    return ReadOn(ranks, reading, [&](const auto& body) { OnRanks(ranks, body); });
  }
  Read ReadSimulated(int ranks, uint64_t seed, const ExchangeReading& reading) const {
    return ReadOn(ranks, reading, [&](const auto& body) {
      SimulatedCluster cluster({.size = ranks, .seed = seed});
      const Status ran = cluster.Run(body);
      EXPECT_TRUE(ran.ok()) << ran.ToString();
    });
  }

  /// The values of a slot by stream, as texts like "uid=7".
  static std::map<std::string, std::set<int>> StreamsOf(const StreamBatches& batches, const std::string& slot) {
    std::map<std::string, std::set<int>> streams;
    for (const auto& [stream, texts] : batches) {
      for (const std::string& text : texts) {
        for (size_t at = text.find(slot + "="); at != std::string::npos; at = text.find(slot + "=", at + 1)) {
          streams[text.substr(at, text.find(' ', at) - at)].insert(stream);
        }
      }
    }
    return streams;
  }

  const TempDir dir_ = TempDir::Create("millrace_row_exchange_").value();
  DataFeedDesc desc_;
  std::vector<std::string> files_;
  uint64_t rows_ = 0;
};

TEST_F(RowExchangeTest, AnyNumberOfRanksGivesTheSameBatchesInEveryPass) {
  AddFiles();
  for (const int64_t passes : {1, 3}) {
    const Read alone = ReadOnThreads(1, {.passes = passes});
    EXPECT_EQ(alone.rows, static_cast<int64_t>(rows_));
    EXPECT_EQ(alone.ranges.TotalPositions(), rows_);
    // Each row once, and files in every stream.
    const auto places = StreamsOf(alone.batches, "x");
    EXPECT_EQ(places.size(), rows_);
    for (const auto& [place, streams] : places) EXPECT_EQ(streams.size(), 1U) << place;
    for (const auto& [stream, texts] : alone.batches) EXPECT_GT(texts.size(), 4U) << "stream " << stream;
    for (const int ranks : {2, 3, 4, 6}) {
      for (const int64_t most_rows : {0, 1, 7}) {
        const Read read = ReadOnThreads(ranks, {.most_rows = most_rows, .passes = passes});
        EXPECT_EQ(read.batches, alone.batches) << ranks << " ranks, " << most_rows << " rows a round";
      }
    }
  }
}

TEST_F(RowExchangeTest, RoundsOfFewBytesCarryEveryRowToo) {
  AddFiles();
  const Read alone = ReadOnThreads(1, {});
  // Less than a row.
  EXPECT_EQ(ReadOnThreads(3, {.most_bytes = 8}).batches, alone.batches);
  EXPECT_EQ(ReadOnThreads(2, {.most_bytes = 500}).batches, alone.batches);
}

TEST_F(RowExchangeTest, AnyNumberOfRanksGivesTheSameWhateverTheNetworkDelays) {
  AddFiles();
  const Read alone = ReadOnThreads(1, {});
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 3);
    EXPECT_EQ(ReadSimulated(ranks, seed, {.most_rows = static_cast<int64_t>(seed % 20)}).batches, alone.batches)
        << "seed " << seed;
  }
}

TEST_F(RowExchangeTest, AnotherSeedGivesAnotherOrder) {
  AddFiles();
  ExchangeReading other;
  other.targets.seed = kJobSeed + 1;
  EXPECT_NE(ReadOnThreads(2, other).batches, ReadOnThreads(2, {}).batches);
}

TEST_F(RowExchangeTest, NamesAndContentTravelToo) {
  desc_.set_parse_ins_id(true);
  desc_.set_parse_content(true);
  AddFiles();
  const Read alone = ReadOnThreads(1, {});
  EXPECT_EQ(StreamsOf(alone.batches, "content").size(), rows_);
  EXPECT_EQ(ReadOnThreads(4, {}).batches, alone.batches);
}

TEST_F(RowExchangeTest, LogKeysTravelToo) {
  desc_.set_parse_logkey(true);
  AddFiles();
  const Read alone = ReadOnThreads(1, {});
  EXPECT_EQ(StreamsOf(alone.batches, "ins_id").size(), rows_);
  EXPECT_EQ(ReadOnThreads(3, {}).batches, alone.batches);
}

TEST_F(RowExchangeTest, RowsOfAUserMeetInAStream) {
  AddFiles();
  ExchangeReading reading;
  reading.targets.by = RowTargets::By::kUid;
  reading.targets.uid_slot = 1;
  const Read alone = ReadOnThreads(1, reading);
  const auto streams = StreamsOf(alone.batches, "uid");
  EXPECT_EQ(streams.size(), 20U);
  for (const auto& [user, of_user] : streams) {
    // Rows without a user go by their places.
    EXPECT_EQ(of_user.size() == 1, user != "uid=") << user;
  }
  for (const int ranks : {2, 4}) EXPECT_EQ(ReadOnThreads(ranks, reading).batches, alone.batches);
}

TEST_F(RowExchangeTest, LinesOfANameMeetAndMerge) {
  desc_ = testing::DescOf("a:uint64 uid:uint64 x:float");
  desc_.set_batch_size(4);
  desc_.set_empty_slot(DataFeedDesc::ALLOW);
  desc_.set_parse_ins_id(true);
  // Two lines of a name, in other files; of every fifth one there is but one.
  for (int file = 0; file < 5; ++file) files_.push_back(dir_.path() + "/part-" + std::to_string(file));
  std::vector<std::ofstream> out;
  for (const std::string& file : files_) out.emplace_back(file);
  for (uint64_t n = 1; n <= 100; ++n) {
    out[n % 5] << "1 n" << n << " 1 " << n << " 0 0\n";
    if (n % 5 != 0) out[(n * 3) % 5] << "1 n" << n << " 0 1 " << n << " 1 0.5\n";
  }
  out.clear();
  ExchangeReading reading;
  reading.targets.by = RowTargets::By::kName;
  reading.rows.merge_by_lineid = true;
  const Read alone = ReadOnThreads(1, reading);
  EXPECT_EQ(alone.rows, 80);
  EXPECT_EQ(alone.counters.at("merged"), 80);
  EXPECT_EQ(alone.counters.at("merge_wrong_size"), 20);
  for (const int ranks : {2, 5}) {
    // What is left out is logged, and the library that logs has a lock that thread sanitizers do not see: one at a
    // time.
    const Read read = ReadSimulated(ranks, 1, reading);
    EXPECT_EQ(read.batches, alone.batches) << ranks << " ranks";
    EXPECT_EQ(read.counters, alone.counters) << ranks << " ranks";
  }
  reading.rows.merge_size = 0;
  EXPECT_EQ(ReadOnThreads(3, reading).batches, ReadOnThreads(1, reading).batches);
}

TEST_F(RowExchangeTest, AnotherNumberOfRanksGoesOnWithinAPass) {
  AddFiles();
  for (const int batches : {0, 1, 3}) {
    for (const auto& [before, after] : std::vector<std::pair<int, int>>{{3, 2}, {2, 1}, {1, 4}}) {
      const Read first = ReadOnThreads(before, {.most_batches = batches});
      const Read second = ReadOnThreads(after, {.trained = &first.ranges});
      EXPECT_EQ(second.batches, ReadOnThreads(1, {.trained = &first.ranges}).batches);
      EXPECT_EQ(first.ranges.TotalPositions() + second.ranges.TotalPositions(), rows_);
      ConsumedRanges all = first.ranges;
      all.Merge(second.ranges);
      EXPECT_EQ(all.TotalPositions(), rows_);
    }
  }
}

TEST_F(RowExchangeTest, ASecondLoadIsShuffledAgain) {
  AddFiles();
  const Read alone = ReadOnThreads(1, {});
  OnRanks(2, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    const auto dataset = Make(ranks, {}).value();
    auto& memory = dynamic_cast<InMemoryControl&>(*dataset);
    for (int load = 0; load < 2; ++load) {
      // Also in the background, where no rank meets another.
      ASSERT_TRUE(memory.PreloadIntoMemory({}).ok());
      ASSERT_TRUE(memory.WaitPreloadDone().ok());
      ASSERT_EQ(memory.LoadIntoMemory({}).status().code(), StatusCode::kAlreadyExists);
      ASSERT_TRUE(dataset->BeginPass({.seed = kJobSeed}).ok());
      const int stream = ranks.ShareOf(kStreams).first;
      ASSERT_EQ(TextOf(*dataset->source(0).Next({}).value()), alone.batches.at(stream)[0]);
      const PassStats stats = dataset->EndPass().value();
      ASSERT_EQ(stats.stage_seconds.count("shuffle"), 1U);
      memory.ReleaseMemory();
      ASSERT_FALSE(memory.IsLoaded());
      ASSERT_EQ(memory.MemoryDataSize(), 0);
    }
  });
}

TEST_F(RowExchangeTest, AStopRequestOfARankEndsTheShuffleOfAll) {
  AddFiles();
  const std::vector<Status> ended = OnRanks(3, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    const auto dataset = Make(ranks, {.most_rows = 1}).value();
    std::stop_source stop;
    EXPECT_TRUE(dynamic_cast<InMemoryControl&>(*dataset).LoadIntoMemory(stop.get_token()).ok());
    if (ranks.rank() == 1) stop.request_stop();
    return dataset->BeginPass({});
  });
  for (const Status& status : ended) EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.ToString();
  EXPECT_THAT(ended[0].message(), HasSubstr("rank 1 ("));
}

TEST_F(RowExchangeTest, ARankThatHasNotLoadedEndsTheShuffleOfAll) {
  AddFiles();
  const std::vector<Status> ended = OnRanks(2, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    const auto dataset = Make(ranks, {}).value();
    if (ranks.rank() == 0) {
      EXPECT_TRUE(dynamic_cast<InMemoryControl&>(*dataset).LoadIntoMemory({}).ok());
    }
    return dataset->BeginPass({});
  });
  for (const Status& status : ended) EXPECT_EQ(status.code(), StatusCode::kInvalidConfig) << status.ToString();
}

TEST_F(RowExchangeTest, ALostRankEndsTheShuffleOfAll) {
  AddFiles();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedCluster cluster({.size = 3, .seed = seed, .losses = {{.rank = 2, .at = 8 + static_cast<int64_t>(seed)}}});
    std::vector<Status> ended(3);
    const Status ran = cluster.Run([&](Communicator& communicator) {
      RankGroup ranks(communicator);
      const auto dataset = Make(ranks, {.most_rows = 1}).value();
      ASSERT_TRUE(dynamic_cast<InMemoryControl&>(*dataset).LoadIntoMemory({}).ok());
      ended[static_cast<size_t>(communicator.rank())] = dataset->BeginPass({});
    });
    EXPECT_TRUE(ran.ok()) << ran.ToString();
    for (const Status& status : ended) EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
  }
}

}  // namespace
}  // namespace millrace
