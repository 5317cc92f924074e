// A table of which each rank has a part behaves as one that a process has alone.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <sstream>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"
#include "core/file.h"
#include "core/hash.h"
#include "model.pb.h"
#include "ranks/rank_files.h"
#include "ranks/rank_group.h"
#include "ranks/rank_tables.h"
#include "table/hash_table.h"
#include "table/table_files.h"

namespace millrace {
namespace {

constexpr uint64_t kSeed = 5;
constexpr int kDim = 3;

TableDesc Desc() {
  TableDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"t\" dim: 3 init { uniform: 0.1 } optimizer { adagrad { lr: 0.1 } } initial_rows: 64", &desc));
  return desc;
}

std::unique_ptr<SparseTable> MakeRankTable(RankTables& ranks) {
  return RankTableFactory(TableFactory::Builtin(), ranks).Create(Desc(), kSeed).value();
}

std::vector<uint64_t> Keys(uint64_t seed, size_t count) {
  std::vector<uint64_t> keys;
  for (size_t i = 0; keys.size() < count; ++i) {
    const uint64_t key = HashedNumber(seed, i) % 1000;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

std::vector<float> ValuesOf(const RowBatch& rows) {
  std::vector<float> values;
  for (const float* row : rows.weights()) values.insert(values.end(), row, row + kDim);
  return values;
}

std::string Saved(const SparseTable& table, ShardRange shards = kAllShards) {
  std::ostringstream out;
  EXPECT_TRUE(table.Save(shards, TableContent::kAll, out).ok());
  return std::move(out).str();
}

/// Updates the rows of `keys`, of which each rank pushes its own.
void PushOwn(SparseTable& table, const RankTables& ranks, int rank, std::span<const uint64_t> keys) {
  std::vector<uint64_t> own;
  std::vector<float> gradients;
  for (const uint64_t key : keys) {
    if (ranks.OwnerOf(VirtualShardOf(key)) != rank) continue;
    own.push_back(key);
    for (int d = 0; d < kDim; ++d) gradients.push_back(static_cast<float>(key + 1) * 0.001f);
  }
  RowBatch rows;
  ASSERT_TRUE(table.Pull(own, PullMode::kInsert, &rows).ok());
  ASSERT_TRUE(table.Push(rows, gradients, {.lr = 0.1f}).ok());
}

/// What every rank does, whatever its communicator is.
void UseTable(Communicator& communicator, const std::string& expected, const std::vector<float>& expected_values) {
  RankCalls calls(communicator);
  RankTables ranks(calls);
  const std::unique_ptr<SparseTable> table = MakeRankTable(ranks);
  ASSERT_TRUE(communicator.Barrier().ok());
  // Each rank makes rows, of all ranks.
  RowBatch rows;
  ASSERT_TRUE(table->Pull(Keys(static_cast<uint64_t>(communicator.rank() % 2), 200), PullMode::kInsert, &rows).ok());
  ASSERT_TRUE(communicator.Barrier().ok());
  PushOwn(*table, ranks, communicator.rank(), Keys(0, 200));
  ASSERT_TRUE(communicator.Barrier().ok());
  const std::vector<uint64_t> asked = Keys(2, 300);
  ASSERT_TRUE(table->Pull(asked, PullMode::kReadOnly, &rows).ok());
  EXPECT_EQ(ValuesOf(rows), expected_values);
  EXPECT_EQ(Saved(*table), expected);
  ASSERT_TRUE(communicator.Barrier().ok());
}

class RankTableTest : public testing::TestWithParam<int> {
 protected:
  RankTableTest() {
    alone_ = CreateHashTable(Desc(), kSeed).value();
    RowBatch rows;
    EXPECT_TRUE(alone_->Pull(Keys(0, 200), PullMode::kInsert, &rows).ok());
    std::vector<float> gradients;
    for (const uint64_t key : Keys(0, 200)) {
      for (int d = 0; d < kDim; ++d) gradients.push_back(static_cast<float>(key + 1) * 0.001f);
    }
    const uint64_t last_rank = GetParam() > 1 ? 1 : 0;
    EXPECT_TRUE(alone_->Pull(Keys(last_rank, 200), PullMode::kInsert, &rows).ok());
    EXPECT_TRUE(alone_->Pull(Keys(0, 200), PullMode::kInsert, &rows).ok());
    EXPECT_TRUE(alone_->Push(rows, gradients, {.lr = 0.1f}).ok());
    EXPECT_TRUE(alone_->Pull(Keys(2, 300), PullMode::kReadOnly, &rows).ok());
    values_ = ValuesOf(rows);
  }

  std::unique_ptr<SparseTable> alone_;
  std::vector<float> values_;
};

TEST_P(RankTableTest, RanksSeeAndSaveTheTableThatOneProcessHas) {
  const std::string expected = Saved(*alone_);
  OnRanks(GetParam(), [&](Communicator& communicator) { UseTable(communicator, expected, values_); });
}

TEST_P(RankTableTest, RanksSeeTheSameWhateverTheNetworkDelays) {
  const std::string expected = Saved(*alone_);
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedCluster cluster({.size = GetParam(), .seed = seed});
    const Status ran = cluster.Run([&](Communicator& communicator) { UseTable(communicator, expected, values_); });
    EXPECT_TRUE(ran.ok()) << ran.ToString();
  }
}

/// Has a rank take part in a table of 500 rows and calls `use` with it. All have come that far when it is called, and
/// answer until all have returned from theirs.
template <class Use>
void UseRows(Communicator& communicator, const Use& use) {
  RankCalls calls(communicator);
  RankTables ranks(calls);
  const std::unique_ptr<SparseTable> table = MakeRankTable(ranks);
  ASSERT_TRUE(communicator.Barrier().ok());
  RowBatch rows;
  ASSERT_TRUE(table->Pull(Keys(0, 500), PullMode::kInsert, &rows).ok());
  ASSERT_TRUE(communicator.Barrier().ok());
  use(*table, ranks);
  ASSERT_TRUE(communicator.Barrier().ok());
}

/// What rank 0 saves, in eight files, while the others answer.
void SaveFiles(Communicator& communicator, const std::string& folder, std::vector<TableFile>* saved, int64_t* bytes) {
  UseRows(communicator, [&](SparseTable& table, RankTables& ranks) {
    PushOwn(table, ranks, communicator.rank(), Keys(0, 500));
    ASSERT_TRUE(ranks.Flush().ok());
    ASSERT_TRUE(communicator.Barrier().ok());
    const int64_t before = communicator.bytes_sent();
    if (communicator.rank() == 0) {
      auto written = SaveTable(table, TableContent::kAll, folder, "t", 8, 1);
      ASSERT_TRUE(written.ok()) << written.status().ToString();
      *saved = std::move(*written);
    }
    ASSERT_TRUE(communicator.Barrier().ok());
    bytes[communicator.rank()] = communicator.bytes_sent() - before;
  });
}

TEST_P(RankTableTest, OwnersWriteTheFilesThatOneProcessWrites) {
  const TempDir folder = TempDir::Create("millrace_owners_").value();
  const std::unique_ptr<SparseTable> alone = CreateHashTable(Desc(), kSeed).value();
  RowBatch rows;
  const std::vector<uint64_t> keys = Keys(0, 500);
  ASSERT_TRUE(alone->Pull(keys, PullMode::kInsert, &rows).ok());
  std::vector<float> gradients;
  for (const uint64_t key : keys) gradients.insert(gradients.end(), kDim, static_cast<float>(key + 1) * 0.001f);
  ASSERT_TRUE(alone->Push(rows, gradients, {.lr = 0.1f}).ok());
  const auto expected = SaveTable(*alone, TableContent::kAll, folder.path(), "alone", 8, 1);
  ASSERT_TRUE(expected.ok());

  std::vector<TableFile> saved;
  std::vector<int64_t> bytes(static_cast<size_t>(GetParam()));
  OnRanks(GetParam(),
          [&](Communicator& communicator) { SaveFiles(communicator, folder.path(), &saved, bytes.data()); });
  ASSERT_EQ(saved.size(), expected->size());
  uint64_t table_bytes = 0;
  for (size_t i = 0; i < saved.size(); ++i) {
    table_bytes += saved[i].sum.bytes;
    EXPECT_EQ(saved[i].sum, (*expected)[i].sum) << saved[i].name;
    EXPECT_TRUE(CheckFileSum(folder.path() + "/" + saved[i].name, saved[i].sum).ok()) << saved[i].name;
  }
  if (GetParam() != 2) return;
  // The parts end where files do, so that no row travels.
  for (const int64_t sent : bytes) EXPECT_LT(sent, static_cast<int64_t>(table_bytes) / 4);
}

/// What rank 0 saves in `files` files: all rows, then what all ranks have pushed to since.
void SaveChanges(Communicator& communicator, const std::string& folder, int files, std::string* expected) {
  UseRows(communicator, [&](SparseTable& table, RankTables& ranks) {
    auto& changes = dynamic_cast<ChangeTracking&>(table);
    const bool leads = communicator.rank() == 0;
    const auto settle = [&] {
      ASSERT_TRUE(ranks.Flush().ok());
      ASSERT_TRUE(communicator.Barrier().ok());
    };
    PushOwn(table, ranks, communicator.rank(), Keys(0, 500));
    settle();
    if (leads) {
      EXPECT_EQ(changes.CountChanges()->since, -1);
      ASSERT_TRUE(SaveTable(table, TableContent::kAll, folder, "all", 4, 1).ok());
      ASSERT_TRUE(changes.BeginChanges().ok());
    }
    ASSERT_TRUE(communicator.Barrier().ok());
    // Each pushes to rows of all, and makes some.
    for (const int seed : {0, communicator.rank() + 1}) {
      RowBatch rows;
      ASSERT_TRUE(table.Pull(Keys(static_cast<uint64_t>(seed), 15), PullMode::kInsert, &rows).ok());
      ASSERT_TRUE(table.Push(rows, std::vector<float>(15 * kDim, 0.5F), {.lr = 0.1F}).ok());
    }
    settle();
    if (leads) {
      EXPECT_GE(changes.CountChanges()->rows, 15);
      ASSERT_TRUE(SaveTable(table, TableContent::kChanges, folder, "changes", files, 1).ok());
      *expected = Saved(table);
    }
    ASSERT_TRUE(communicator.Barrier().ok());
  });
}

TEST_P(RankTableTest, WhatChangedOnAllRanksIsSavedBehindAllRows) {
  for (const int files : {1, 8}) {
    const TempDir folder = TempDir::Create("millrace_changes_").value();
    std::string expected;
    OnRanks(GetParam(),
            [&](Communicator& communicator) { SaveChanges(communicator, folder.path(), files, &expected); });
    std::vector<FilesOfSave> saves(2);
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
      const bool is_of_all = file.path().string().find("/all/") != std::string::npos;
      if (file.is_regular_file()) saves[is_of_all ? 0 : 1].push_back(file.path());
    }
    EXPECT_EQ(saves[1].size(), static_cast<size_t>(files));
    const std::unique_ptr<SparseTable> loaded = CreateHashTable(Desc(), kSeed).value();
    const Status status = LoadTable(saves, kAllShards, 2, loaded.get());
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(Saved(*loaded), expected);
  }
}

TEST(OwnersFileTest, WhoSeesAnotherFolderWritesNothing) {
  const TempDir folder = TempDir::Create("millrace_mark_").value();
  const std::unique_ptr<SparseTable> part = CreateHashTable(Desc(), kSeed).value();
  OwnersFile file;
  file.shards = kAllShards;
  file.path = folder.path() + "/rows";
  file.mark = MarkFile(file.path).value();
  const std::string other = MarkFile(file.path).value();
  ASSERT_NE(file.mark, other);
  EXPECT_EQ(WriteOwnersFile(*part, file).value().reason, "another file is there");
  EXPECT_EQ(ReadFile(file.path).value(), other);
  file.mark = other;
  const std::optional<FileSum> written = WriteOwnersFile(*part, file).value().sum;
  ASSERT_TRUE(written.has_value());
  EXPECT_TRUE(HasBytes(file.path, written->bytes));
  EXPECT_FALSE(HasBytes(file.path, written->bytes + 1));
  file.path = folder.path() + "/absent/rows";
  const ShardWriter absent = WriteOwnersFile(*part, file).value();
  EXPECT_FALSE(absent.sum.has_value());
  EXPECT_EQ(absent.reason, "No such file or directory");
  EXPECT_FALSE(MarkFile(file.path).ok());
}

/// Has rank 1 save, with room for no file of rows. Rank 0 owns the first file.
void SaveWithoutRoom(Communicator& communicator, const std::string& folder, Status* saved) {
  UseRows(communicator, [&](SparseTable& table, RankTables&) {
    if (communicator.rank() == 1) *saved = SaveTable(table, TableContent::kAll, folder, "t", 2, 1).status();
  });
}

TEST(OwnersFileTest, AFileThatAnOwnerCannotWriteNamesItsRankAndHost) {
  const TempDir folder = TempDir::Create("millrace_room_").value();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;  // a mark fits
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status saved;
  OnRanks(2, [&](Communicator& communicator) { SaveWithoutRoom(communicator, folder.path(), &saved); });
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(saved.code(), StatusCode::kIo);
  EXPECT_NE(saved.message().find("rank 0: host " + HostName() + ": cannot write"), std::string::npos)
      << saved.ToString();
}

TEST_P(RankTableTest, APartIsLoadedFromAFileOfAll) {
  const std::string saved = Saved(*alone_);
  OnRanks(GetParam(), [&](Communicator& communicator) {
    RankCalls calls(communicator);
    RankTables ranks(calls);
    const std::unique_ptr<SparseTable> table = MakeRankTable(ranks);
    EXPECT_TRUE(table->IsEmptyHere());
    std::istringstream in(saved);
    ASSERT_TRUE(table->Load(kAllShards, in, LoadMode::kNew).ok());
    ASSERT_TRUE(communicator.Barrier().ok());
    EXPECT_EQ(table->stats().rows, alone_->stats().rows);
    EXPECT_EQ(Saved(*table, {100, 700}), Saved(*alone_, {100, 700}));
    EXPECT_EQ(table->FindNonFinite().rows, 0);
    ASSERT_TRUE(communicator.Barrier().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, RankTableTest, testing::Values(1, 2, 3, 5), testing::PrintToStringParamName());

TEST(RankTableTest, AGradientOfAnothersRowGoesToIt) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankTables first(calls);
  RankCalls other_calls(cluster.rank(1));
  RankTables second(other_calls);
  const std::unique_ptr<SparseTable> one = MakeRankTable(first);
  const std::unique_ptr<SparseTable> other = MakeRankTable(second);
  RowBatch rows;
  ASSERT_TRUE(one->Pull(Keys(0, 50), PullMode::kInsert, &rows).ok());
  std::vector<float> before;
  for (const float* row : rows.weights()) before.insert(before.end(), row, row + kDim);
  const std::vector<float> gradients(50 * kDim, 1.0f);
  ASSERT_TRUE(one->Push(rows, gradients, {.lr = 0.1f}).ok());
  ASSERT_TRUE(first.Flush().ok());
  // SGD, where rows are: seen from either rank.
  for (SparseTable* table : {one.get(), other.get()}) {
    ASSERT_TRUE(table->Pull(Keys(0, 50), PullMode::kReadOnly, &rows).ok());
    EXPECT_TRUE(rows.missing().empty());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_LT(rows.weights()[i / kDim][i % kDim], before[i]) << "float " << i;
    }
  }
  EXPECT_EQ(first.pushes().sent, 2);
  EXPECT_EQ(first.pushes().applied, 1);
  EXPECT_EQ(second.pushes().applied, 1);
}

TEST(RankTableTest, ATableThatAnotherRankDoesNotHaveIsNamed) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankTables first(calls);
  RankCalls other_calls(cluster.rank(1));
  const RankTables second(other_calls);
  const std::unique_ptr<SparseTable> table = MakeRankTable(first);
  RowBatch rows;
  const Status pulled = table->Pull(Keys(0, 50), PullMode::kInsert, &rows);
  EXPECT_EQ(pulled.code(), StatusCode::kNotFound);
  EXPECT_THAT(pulled.message(), testing::HasSubstr("rank 1: there is no table \"t\""));
  EXPECT_EQ(rows.size(), 0U);
}

TEST(RankTableTest, ALostRankEndsAPullWithItsName) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankTables first(calls);
  const std::unique_ptr<SparseTable> table = MakeRankTable(first);
  cluster.Lose(1);
  RowBatch rows;
  const Status pulled = table->Pull(Keys(0, 50), PullMode::kInsert, &rows);
  EXPECT_EQ(pulled.code(), StatusCode::kUnavailable);
  EXPECT_THAT(pulled.message(), testing::HasSubstr("rank 1"));
}

/// A table in two parts, seen from the rank of the first.
class TwoParts : public testing::Test {
 protected:
  Prefetchable& ahead() { return dynamic_cast<Prefetchable&>(*one_); }
  std::vector<float> Pulled(std::span<const uint64_t> keys, SparseTable& table) {
    RowBatch rows;
    EXPECT_TRUE(table.Pull(keys, PullMode::kInsert, &rows).ok());
    return ValuesOf(rows);
  }

  LocalCluster cluster_{2};
  RankCalls calls_{cluster_.rank(0)};
  RankTables first_{calls_};
  RankCalls other_calls_{cluster_.rank(1)};
  RankTables second_{other_calls_};
  std::unique_ptr<SparseTable> one_ = MakeRankTable(first_);
  std::unique_ptr<SparseTable> other_ = MakeRankTable(second_);
  const std::vector<uint64_t> keys_ = Keys(0, 50);
};

TEST_F(TwoParts, APullTakesWhatWasFetchedForItsKeys) {
  const std::vector<float> start = Pulled(keys_, *other_);
  ASSERT_TRUE(ahead().Fetch(keys_).ok());
  ASSERT_TRUE(first_.Flush().ok());
  RowBatch rows;
  ASSERT_TRUE(other_->Pull(keys_, PullMode::kInsert, &rows).ok());
  ASSERT_TRUE(other_->Push(rows, std::vector<float>(keys_.size() * kDim, 1.0f), {.lr = 0.1f}).ok());
  ASSERT_TRUE(second_.Flush().ok());
  // Rows of the other rank are those of the fetch, its own those of now.
  const std::vector<float> fetched = Pulled(keys_, *one_);
  const std::vector<float> now = Pulled(keys_, *one_);
  for (size_t i = 0; i < keys_.size(); ++i) {
    const bool is_own = first_.OwnerOf(VirtualShardOf(keys_[i])) == 0;
    EXPECT_EQ(fetched[i * kDim], (is_own ? now : start)[i * kDim]) << "key " << keys_[i];
    EXPECT_NE(now[i * kDim], start[i * kDim]);
  }
}

TEST_F(TwoParts, AFetchIsForOnePullOfItsKeysAlone) {
  ASSERT_TRUE(ahead().Fetch(keys_).ok());
  const int64_t before = cluster_.rank(0).bytes_sent();
  const std::vector<uint64_t> fewer(keys_.begin(), keys_.end() - 1);
  Pulled(fewer, *one_);
  const int64_t others = cluster_.rank(0).bytes_sent();
  EXPECT_GT(others, before);
  Pulled(keys_, *one_);
  EXPECT_EQ(cluster_.rank(0).bytes_sent(), others) << "it was fetched";
  Pulled(keys_, *one_);
  EXPECT_GT(cluster_.rank(0).bytes_sent(), others);
}

TEST_F(TwoParts, FetchesThatNoPullComesForAreGivenUp) {
  for (uint64_t seed = 0; seed < 40; ++seed) ASSERT_TRUE(ahead().Fetch(Keys(seed, 50)).ok());
  EXPECT_EQ(Pulled(Keys(3, 50), *one_), Pulled(Keys(3, 50), *other_));
}

TEST_F(TwoParts, ALoadedTableGivesNoRowsThatWereFetchedBefore) {
  std::ostringstream saved;
  Pulled(keys_, *one_);
  RowBatch rows;
  ASSERT_TRUE(one_->Pull(keys_, PullMode::kInsert, &rows).ok());
  ASSERT_TRUE(one_->Push(rows, std::vector<float>(keys_.size() * kDim, 1.0f), {.lr = 0.1f}).ok());
  ASSERT_TRUE(first_.Flush().ok());
  ASSERT_TRUE(one_->Save(kAllShards, TableContent::kAll, saved).ok());
  const std::vector<float> trained = Pulled(keys_, *one_);
  one_.reset();
  other_.reset();
  one_ = MakeRankTable(first_);
  other_ = MakeRankTable(second_);
  std::vector<uint64_t> others;  // the loaded rows must not be there before
  for (const uint64_t key : Keys(7, 50)) {
    if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) others.push_back(key);
  }
  ASSERT_TRUE(ahead().Fetch(others).ok());
  for (SparseTable* table : {one_.get(), other_.get()}) {
    std::istringstream in(saved.str());
    ASSERT_TRUE(table->Load(kAllShards, in, LoadMode::kNew).ok());
  }
  EXPECT_EQ(Pulled(keys_, *one_), trained);
  const int64_t before = cluster_.rank(0).bytes_sent();
  Pulled(others, *one_);
  EXPECT_GT(cluster_.rank(0).bytes_sent(), before);
}

TEST_F(TwoParts, FilesOfPartsThatWerePushedToUnequallyOftenAreOfOneSave) {
  std::vector<uint64_t> of_other;
  for (const uint64_t key : keys_) {
    if (first_.OwnerOf(VirtualShardOf(key)) == 1) of_other.push_back(key);
  }
  RowBatch rows;
  for (const std::vector<uint64_t>& keys : {keys_, of_other, of_other}) {
    ASSERT_TRUE(one_->Pull(keys, PullMode::kInsert, &rows).ok());
    ASSERT_TRUE(one_->Push(rows, std::vector<float>(keys.size() * kDim, 1.0f), {.lr = 0.1f}).ok());
  }
  ASSERT_TRUE(first_.Flush().ok());
  EXPECT_EQ(one_->stats().pushes, 3);
  const TempDir folder = TempDir::Create("millrace_parts_").value();
  std::vector<std::string> paths;
  const auto saved = SaveTable(*one_, TableContent::kAll, folder.path(), "t", 4, 1);
  ASSERT_TRUE(saved.ok()) << saved.status().ToString();
  for (const TableFile& file : *saved) paths.push_back(folder.path() + "/" + file.name);
  const std::unique_ptr<SparseTable> alone = CreateHashTable(Desc(), kSeed).value();
  const Status loaded = LoadTable({paths}, kAllShards, 1, alone.get());
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
  EXPECT_EQ(Pulled(keys_, *alone), Pulled(keys_, *one_));
}

TEST_F(TwoParts, AFileThatItsOwnerCannotWriteIsLeftToWhoSaves) {
  const TempDir folder = TempDir::Create("millrace_link_").value();
  Pulled(keys_, *one_);
  const ShardRange of_other = first_.ShardsOf(1);
  // An owner follows no link, wherever it leads there.
  std::filesystem::create_symlink(folder.path() + "/elsewhere", folder.path() + "/rows");
  const auto& others = dynamic_cast<const SavesThroughOthers&>(*one_);
  const auto save = [&](const std::string& name) {
    return others.SaveThroughOwner(of_other, TableContent::kAll, folder.path() + "/" + name);
  };
  ASSERT_TRUE(save("first").value().has_value());
  EXPECT_FALSE(first_.gathers_files());
  testing::internal::CaptureStderr();
  EXPECT_FALSE(save("rows").value().has_value());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(testing::HasSubstr("/rows\", which rank 0 has made: rank 1 (" + HostName() + "): "),
                             testing::HasSubstr("gathers the rows of all tables")));
  EXPECT_TRUE(first_.gathers_files());
  EXPECT_FALSE(save("second").value().has_value());
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/second"));
}

TEST_F(TwoParts, APushNamesTheKeysOfItsPullByTheirNumber) {
  RowBatch rows;
  ASSERT_TRUE(one_->Pull(keys_, PullMode::kInsert, &rows).ok());
  const std::vector<float> gradients(keys_.size() * kDim, 1.0f);
  RowBatch whole;
  whole.Take(rows);
  const int64_t start = cluster_.rank(0).bytes_sent();
  ASSERT_TRUE(one_->Push(whole, gradients, {.lr = 0.1f}).ok());
  ASSERT_TRUE(first_.Flush().ok());
  const int64_t by_number = cluster_.rank(0).bytes_sent() - start;
  // A gradient that was put together from parts has other keys.
  RowBatch reversed;
  reversed.Start(one_.get());
  for (size_t i = keys_.size(); i-- > 0;) reversed.Append(rows, i);
  ASSERT_TRUE(one_->Push(reversed, gradients, {.lr = 0.1f}).ok());
  ASSERT_TRUE(first_.Flush().ok());
  const int64_t by_keys = cluster_.rank(0).bytes_sent() - start - by_number;
  const auto owned_elsewhere =
      std::count_if(keys_.begin(), keys_.end(), [&](uint64_t key) { return first_.OwnerOf(VirtualShardOf(key)) == 1; });
  EXPECT_GE(by_keys - by_number, owned_elsewhere * static_cast<int64_t>(sizeof(uint64_t)));
  EXPECT_EQ(first_.pushes().sent, 4);
  EXPECT_EQ(first_.pushes().applied + second_.pushes().applied, 4);
}

}  // namespace
}  // namespace millrace
