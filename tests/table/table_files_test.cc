#include "table/table_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <utility>

#include "core/crc32c.h"
#include "core/file.h"
#include "model.pb.h"
#include "table/hash_table.h"
#include "table/table_io.h"

namespace millrace {
namespace {

using testing::HasSubstr;

std::unique_ptr<SparseTable> EmptyTable(const std::string& name = "t", int dim = 3) {
  TableDesc desc;
  desc.set_name(name);
  desc.set_dim(dim);
  desc.set_initial_rows(0);
  desc.mutable_optimizer()->mutable_adagrad();
  Result<std::unique_ptr<SparseTable>> table = CreateHashTable(desc, 1);
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return std::move(table).value();
}

void AddRows(SparseTable& table, uint64_t rows) {
  std::vector<uint64_t> keys(rows);
  for (uint64_t i = 0; i < rows; ++i) keys[i] = i * i * 7919;
  RowBatch batch;
  ASSERT_TRUE(table.Pull(keys, PullMode::kInsert, &batch).ok());
  const std::vector<float> gradients(rows * static_cast<size_t>(table.shape().dim), 0.25F);
  ASSERT_TRUE(table.Push(batch, gradients, {0.1F, nullptr}).ok());
}

std::string BytesOf(const SparseTable& table, ShardRange shards = kAllShards) {
  std::ostringstream out;
  EXPECT_TRUE(table.Save(shards, TableContent::kAll, out).ok());
  return out.str();
}

class TableFiles : public testing::Test {
 protected:
  TableFiles() : folder_((std::filesystem::temp_directory_path() / "table-files-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~TableFiles() override { std::filesystem::remove_all(folder_); }

  /// The paths of the files.
  std::vector<std::string> Save(const SparseTable& table, const std::string& name, int files, int threads = 2) {
    const Result<std::vector<TableFile>> saved = SaveTable(table, TableContent::kAll, folder_, name, files, threads);
    EXPECT_TRUE(saved.ok()) << saved.status().ToString();
    std::vector<std::string> paths;
    for (const TableFile& file : saved.value()) {
      EXPECT_TRUE(CheckFileSum(folder_ + "/" + file.name, file.sum).ok());
      paths.push_back(folder_ + "/" + file.name);
    }
    return paths;
  }
  static std::string Failure(const std::vector<std::string>& paths) {
    const Status status = LoadTable({paths}, kAllShards, 2, EmptyTable().get());
    EXPECT_EQ(status.code(), StatusCode::kBadData);
    return status.message();
  }

  std::string folder_;
};

TEST_F(TableFiles, AreTheSameWhateverTheThreads) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 20000);
  EXPECT_EQ(Save(*table, "one", 1), std::vector<std::string>{folder_ + "/one"});
  const std::vector<std::string> alone = Save(*table, "alone", 8, 1);
  const std::vector<std::string> together = Save(*table, "together", 8, 4);
  ASSERT_EQ(alone.size(), 8);
  EXPECT_EQ(alone[0], folder_ + "/alone/0000-0127");
  EXPECT_EQ(alone[7], folder_ + "/alone/0896-1023");
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(ReadFile(alone[i]).value(), ReadFile(together[i]).value());
  for (const int threads : {1, 4}) {
    for (std::vector<std::string> paths : {alone, {folder_ + "/one"}}) {
      std::reverse(paths.begin(), paths.end());
      const std::unique_ptr<SparseTable> loaded = EmptyTable();
      const Status status = LoadTable({paths}, kAllShards, threads, loaded.get());
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(BytesOf(*loaded), BytesOf(*table));
      EXPECT_EQ(LoadTable({paths}, kAllShards, threads, loaded.get()).code(), StatusCode::kAlreadyExists);
    }
  }
}

TEST_F(TableFiles, HoldEachRowOnceInTheOrderOfShardAndKey) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 9000);
  std::vector<std::pair<uint32_t, uint64_t>> rows;
  for (const std::string& path : Save(*table, "t", 4)) {
    std::ifstream file(path, std::ios::binary);
    Result<TableReader> reader = TableReader::Open(file);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader->header().shards.begin, rows.empty() ? 0 : rows.back().first / 256 * 256 + 256);
    while (const TableBlock* const block = reader->Next().value()) {
      for (const uint64_t key : block->keys) rows.emplace_back(VirtualShardOf(key), key);
    }
  }
  EXPECT_EQ(rows.size(), 9000);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end());
}

// A process of three reads what four wrote.
TEST_F(TableFiles, AreReadByRangesOfOtherSizes) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 9000);
  const std::vector<std::string> paths = Save(*table, "t", 4);
  int64_t rows = 0;
  for (const ShardRange shards : {ShardRange{0, 300}, ShardRange{300, 301}, ShardRange{301, kVirtualShards}}) {
    const std::unique_ptr<SparseTable> part = EmptyTable();
    ASSERT_TRUE(LoadTable({paths}, shards, 2, part.get()).ok());
    rows += part->stats().rows;
    EXPECT_EQ(BytesOf(*part, shards), BytesOf(*table, shards));
  }
  EXPECT_EQ(rows, table->stats().rows);
}

TEST_F(TableFiles, OfAnEarlierSaveGo) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 100);
  Save(*table, "t", 4);
  EXPECT_EQ(Save(*table, "t", 1), std::vector<std::string>{folder_ + "/t"});
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_ + "/t"));
  Save(*table, "t", 8);
  const std::vector<std::string> paths = Save(*table, "t", 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/t"), {}), 2);
  EXPECT_TRUE(LoadTable({paths}, kAllShards, 1, EmptyTable().get()).ok());
}

TEST_F(TableFiles, SayWhatIsMissingOrThereTwice) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 500);
  const std::vector<std::string> paths = Save(*table, "t", 4);
  const std::vector<std::string> other = Save(*table, "other", 2);
  EXPECT_EQ(Failure({paths[0], paths[1], paths[3]}),
            "table \"t\": none of its 3 files holds virtual shards 0512-0767, which come behind \"" + paths[1] +
                "\": a file is missing or was left out of the list; copy all files of the folder again, or use another "
                "checkpoint");
  EXPECT_THAT(Failure({paths[1], paths[2], paths[3]}), HasSubstr("of its 3 files holds virtual shards 0000-0255: a"));
  EXPECT_THAT(Failure({paths[0]}), HasSubstr("holds virtual shards 0256-1023, which come behind"));
  EXPECT_THAT(Failure({}), HasSubstr("none of its 0 files holds virtual shards 0000-1023"));
  std::vector<std::string> twice = paths;
  twice.push_back(paths[2]);
  EXPECT_THAT(Failure(twice), HasSubstr("/t/0512-0767\" both hold virtual shard 512: they are not of one save"));
  std::vector<std::string> more = paths;
  more.push_back(other[1]);
  EXPECT_THAT(Failure(more), HasSubstr("both hold virtual shard 512"));
  EXPECT_THAT(Failure({other[0], paths[3]}), HasSubstr("virtual shards 0512-0767"));
  std::filesystem::remove(paths[3]);
  const Status gone = LoadTable({paths}, kAllShards, 2, EmptyTable().get());
  EXPECT_EQ(gone.code(), StatusCode::kIo);
  EXPECT_THAT(gone.message(), HasSubstr(paths[3]));
}

TEST_F(TableFiles, OfAnotherTableOrStepAreRefused) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 500);
  const std::vector<std::string> before = Save(*table, "before", 2);
  AddRows(*table, 500);
  const std::vector<std::string> now = Save(*table, "now", 2);
  EXPECT_EQ(
      Failure({now[0], before[1]}),
      "table \"t\": \"" + before[1] + "\" is of table \"t\" after 1 updates, and \"" + now[0] +
          "\" of table \"t\" after 2 updates: they are not of one save; copy all files of the folder again, or use "
          "another checkpoint");
  const std::unique_ptr<SparseTable> other = EmptyTable("u");
  AddRows(*other, 10);
  EXPECT_THAT(Failure({before[0], Save(*other, "u", 2)[1]}), HasSubstr("is of table \"u\" after 1 updates"));
  const std::unique_ptr<SparseTable> wide = EmptyTable("t", 4);
  AddRows(*wide, 10);
  EXPECT_THAT(Failure({before[0], Save(*wide, "wide", 2)[1]}), HasSubstr("they are not of one save"));
}

TEST_F(TableFiles, DamagedOnesAreNamed) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 500);
  for (const auto& [bytes, what] : std::initializer_list<std::pair<size_t, const char*>>{
           {10, "it ends within the header"}, {1000, "it ends within block 0"}, {0, "it ends within the header"}}) {
    const std::vector<std::string> paths = Save(*table, "t", 4);
    std::filesystem::resize_file(paths[2], bytes);
    const std::string failure = Failure(paths);
    EXPECT_THAT(failure, HasSubstr(paths[2] + ": saved table: "));
    EXPECT_THAT(failure, HasSubstr(what));
  }
  // A row lies in the file of its shard alone, whatever the checksums say.
  std::ofstream file(folder_ + "/wrong", std::ios::binary);
  TableHeader header;
  header.dim = 3;
  header.row_floats = 3;
  header.rows = 1;
  header.shards = {0, 512};
  TableWriter writer = TableWriter::Create(file, header).value();
  uint64_t key = 0;
  while (VirtualShardOf(key) < 512) ++key;
  const std::vector<float> row(3);
  ASSERT_TRUE(writer.Add(key, row.data()).ok());
  ASSERT_TRUE(writer.Finish().ok());
  file.close();
  std::ifstream in(folder_ + "/wrong", std::ios::binary);
  EXPECT_THAT(EmptyTable()->Load(kAllShards, in, LoadMode::kNew).message(), HasSubstr("which the file is not to hold"));
}

TEST_F(TableFiles, AFullDiskNamesTheFile) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 5000);
  const std::vector<std::string> paths = Save(*table, "t", 4);
  const std::string largest = *std::max_element(paths.begin(), paths.end(), [](const auto& a, const auto& b) {
    return std::filesystem::file_size(a) < std::filesystem::file_size(b);
  });
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{std::filesystem::file_size(largest) - 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Result<std::vector<TableFile>> saved = SaveTable(*table, TableContent::kAll, folder_, "t", 4, 2);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.status().code(), StatusCode::kIo);
  EXPECT_THAT(saved.status().message(), HasSubstr("cannot write \"" + largest + "\""));
}

TEST_F(TableFiles, AreMoreThanOneFrom32MebibytesOn) {
  const std::unique_ptr<SparseTable> table = EmptyTable("t", 1 << 15);  // rows of 128 KiB, and as much state
  AddRows(*table, 127);
  EXPECT_EQ(CountTableFiles(table->shape(), TableContent::kAll, table->stats().rows), 1);
  AddRows(*table, 128);
  EXPECT_EQ(CountTableFiles(table->shape(), TableContent::kAll, table->stats().rows), 2);
  EXPECT_EQ(CountTableFiles(table->shape(), TableContent::kWeights, table->stats().rows), 1);
  EXPECT_EQ(CountTableFiles(EmptyTable()->shape(), TableContent::kAll, EmptyTable()->stats().rows), 1);
}

ChangeTracking& ChangesOf(SparseTable& table) { return dynamic_cast<ChangeTracking&>(table); }

/// Pushes to `rows` keys that a seed draws of the first `of`.
void PushSome(SparseTable& table, uint32_t seed, uint64_t rows, uint64_t of) {
  std::mt19937_64 random(seed);
  std::set<uint64_t> drawn;
  while (drawn.size() < rows) drawn.insert(random() % of);
  const std::vector<uint64_t> keys(drawn.begin(), drawn.end());
  RowBatch batch;
  ASSERT_TRUE(table.Pull(keys, PullMode::kInsert, &batch).ok());
  const std::vector<float> gradients(rows * static_cast<size_t>(table.shape().dim), 0.5F);
  ASSERT_TRUE(table.Push(batch, gradients, {0.1F, nullptr}).ok());
}

/// A table that is saved whole, and then three times by what changed.
class TableChanges : public TableFiles {
 protected:
  TableChanges() {
    PushSome(*table_, 1, 6000, 8000);
    saves_.push_back(Save(*table_, "whole", 4));
    int k = 0;
    for (const auto& [rows, of] : {std::pair(50, 8000), std::pair(700, 9000), std::pair(1, 20)}) {
      EXPECT_TRUE(ChangesOf(*table_).BeginChanges().ok());
      PushSome(*table_, 7U + static_cast<uint32_t>(k), static_cast<uint64_t>(rows), static_cast<uint64_t>(of));
      counts_.push_back(ChangesOf(*table_).CountChanges()->rows);
      saves_.push_back(SaveChanges("changes-" + std::to_string(k), 1 << k));
      ++k;
    }
  }
  FilesOfSave SaveChanges(const std::string& name, int files) {
    const auto saved = SaveTable(*table_, TableContent::kChanges, folder_, name, files, 2);
    EXPECT_TRUE(saved.ok()) << saved.status().ToString();
    FilesOfSave paths;
    for (const TableFile& file : saved.value()) paths.push_back(folder_ + "/" + file.name);
    return paths;
  }
  static std::string FailureOf(const std::vector<FilesOfSave>& saves) {
    const Status status = LoadTable(saves, kAllShards, 2, EmptyTable("t", kDim).get());
    EXPECT_EQ(status.code(), StatusCode::kBadData);
    return status.message();
  }

  static constexpr int kDim = 16;  // a row has a mark of its own
  std::unique_ptr<SparseTable> table_ = EmptyTable("t", kDim);
  std::vector<FilesOfSave> saves_;
  std::vector<int64_t> counts_;
};

TEST_F(TableChanges, WithWhatTheyChangeAreTheTable) {
  EXPECT_THAT(counts_, testing::ElementsAre(50, 700, 1));
  for (const int threads : {1, 3}) {
    const std::unique_ptr<SparseTable> loaded = EmptyTable("t", kDim);
    const Status status = LoadTable(saves_, kAllShards, threads, loaded.get());
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(BytesOf(*loaded), BytesOf(*table_)) << "weights, state and the count of pushes";
  }
  for (const ShardRange shards : {ShardRange{0, 100}, ShardRange{100, kVirtualShards}}) {
    const std::unique_ptr<SparseTable> part = EmptyTable("t", kDim);
    ASSERT_TRUE(LoadTable(saves_, shards, 1, part.get()).ok());
    EXPECT_EQ(BytesOf(*part, shards), BytesOf(*table_, shards));
  }
}

TEST_F(TableChanges, BehindAnotherSaveAreRefused) {
  EXPECT_THAT(FailureOf({saves_[1]}), HasSubstr("\"" + saves_[1][0] +
                                                "\" has only what changed since update 1: the "
                                                "files with all rows are missing"));
  EXPECT_THAT(FailureOf({saves_[0], saves_[2]}),
              HasSubstr("\"" + saves_[2][0] + "\" has what changed since update 2, and \"" + saves_[0][0] +
                        "\" is of update 1: they do not belong together"));
  EXPECT_THAT(FailureOf({saves_[0], saves_[1], saves_[0]}), HasSubstr("\"" + saves_[0][0] + "\" has all rows, and"));
  const std::unique_ptr<SparseTable> other = EmptyTable("other", kDim);
  PushSome(*other, 1, 6000, 8000);
  EXPECT_THAT(FailureOf({Save(*other, "other", 4), saves_[1]}),
              HasSubstr("\"" + saves_[1][0] + "\" is of table \"t\", and"));
  FilesOfSave half = saves_[2];
  half.pop_back();
  EXPECT_THAT(FailureOf({saves_[0], saves_[1], half}), HasSubstr("virtual shards 0512-1023"));
  FilesOfSave mixed = saves_[0];
  mixed[0] = saves_[1][0];
  EXPECT_THAT(FailureOf({mixed}), HasSubstr("both hold virtual shard 256"));
}

TEST_F(TableChanges, CutOffAreRefused) {
  const std::string path = saves_[1][0];
  const std::string bytes = ReadFile(path).value();
  for (const size_t size : {size_t{41}, size_t{50}, size_t{60}, bytes.size() - 1}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_THAT(FailureOf({saves_[0], saves_[1]}), HasSubstr(path + ": saved table: it ends"));
  }
}

TEST_F(TableChanges, AreNotKnownOfATableThatDidNotBegin) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 10);
  EXPECT_EQ(ChangesOf(*table).CountChanges()->since, -1);
  EXPECT_EQ(SaveTable(*table, TableContent::kChanges, folder_, "none", 1, 1).status().code(), StatusCode::kInternal);
}

// Small rows share marks: what is saved is more than changed, and never less.
TEST_F(TableChanges, OfSmallRowsLoseNothing) {
  for (const int dim : {1, 2, 3, 5, 17, 40}) {
    const std::unique_ptr<SparseTable> table = EmptyTable("t", dim);
    PushSome(*table, 1, 3000, 4000);
    const FilesOfSave whole = Save(*table, "small", 2);
    ASSERT_TRUE(ChangesOf(*table).BeginChanges().ok());
    PushSome(*table, 2, 100, 4500);
    EXPECT_GE(ChangesOf(*table).CountChanges()->rows, 100);
    ASSERT_TRUE(SaveTable(*table, TableContent::kChanges, folder_, "small-changes", 1, 1).ok());
    const std::unique_ptr<SparseTable> loaded = EmptyTable("t", dim);
    ASSERT_TRUE(LoadTable({whole, {folder_ + "/small-changes"}}, kAllShards, 2, loaded.get()).ok());
    EXPECT_EQ(BytesOf(*loaded), BytesOf(*table)) << "dim " << dim;
  }
}

void Append(std::string* bytes, const auto& value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// What versions before virtual shards wrote: rows by key, no range.
TEST_F(TableFiles, OfEarlierVersionsAreRead) {
  std::string bytes = "MRTABLE1";
  for (const uint32_t value : {1U, 0U, 2U, 2U}) Append(&bytes, value);
  for (const uint64_t value : {uint64_t{5}, uint64_t{0}}) Append(&bytes, value);
  bytes += "t";
  Append(&bytes, Crc32c(0, bytes.data(), bytes.size()));
  const size_t block = bytes.size();
  const std::vector<uint64_t> keys = {0, 1, 2, 1000, UINT64_MAX};
  for (const uint64_t key : keys) Append(&bytes, key);
  for (int i = 0; i < 10; ++i) Append(&bytes, static_cast<float>(i));
  Append(&bytes, Crc32c(0, bytes.data() + block, bytes.size() - block));
  std::ofstream(folder_ + "/old", std::ios::binary) << bytes;
  const std::unique_ptr<SparseTable> table = EmptyTable("t", 2);
  const Status status = LoadTable({FilesOfSave{folder_ + "/old"}}, kAllShards, 2, table.get());
  ASSERT_TRUE(status.ok()) << status.ToString();
  RowBatch rows;
  ASSERT_TRUE(table->Pull(keys, PullMode::kReadOnly, &rows).ok());
  EXPECT_TRUE(rows.missing().empty());
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(rows.weights()[i][1], static_cast<float>(2 * i + 1));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::istringstream cut(bytes.substr(0, i));
    EXPECT_EQ(EmptyTable("t", 2)->Load(kAllShards, cut, LoadMode::kNew).code(), StatusCode::kBadData) << "cut at " << i;
  }
  const std::unique_ptr<SparseTable> part = EmptyTable("t", 2);
  ASSERT_TRUE(LoadTable({FilesOfSave{folder_ + "/old"}}, {0, 512}, 2, part.get()).ok());
  EXPECT_LT(part->stats().rows, 5);
}

TEST_F(TableFiles, AStopEndsTheSavingAndTheLoading) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 20000);
  std::atomic<uint64_t> told{0};
  const LongWork work{{}, [&told](uint64_t bytes) { told += bytes; }};
  const Result<std::vector<TableFile>> saved = SaveTable(*table, TableContent::kAll, folder_, "t", 4, 2, work);
  ASSERT_TRUE(saved.ok()) << saved.status().ToString();
  uint64_t bytes = 0;
  std::vector<std::string> paths;
  for (const TableFile& file : *saved) {
    bytes += file.sum.bytes;
    paths.push_back(folder_ + "/" + file.name);
  }
  EXPECT_EQ(told, bytes);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(SaveTable(*table, TableContent::kAll, folder_, "u", 4, 2, {stop.get_token(), {}}).status().code(),
            StatusCode::kCancelled);
  EXPECT_EQ(LoadTable({paths}, kAllShards, 2, EmptyTable().get(), {stop.get_token()}).code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace millrace
