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
    const Status status = LoadTable(paths, kAllShards, 2, EmptyTable().get());
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
      const Status status = LoadTable(paths, kAllShards, threads, loaded.get());
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(BytesOf(*loaded), BytesOf(*table));
      EXPECT_EQ(LoadTable(paths, kAllShards, threads, loaded.get()).code(), StatusCode::kAlreadyExists);
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
    ASSERT_TRUE(LoadTable(paths, shards, 2, part.get()).ok());
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
  EXPECT_TRUE(LoadTable(paths, kAllShards, 1, EmptyTable().get()).ok());
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
  const Status gone = LoadTable(paths, kAllShards, 2, EmptyTable().get());
  EXPECT_EQ(gone.code(), StatusCode::kIo);
  EXPECT_THAT(gone.message(), HasSubstr(paths[3]));
}

TEST_F(TableFiles, OfAnotherTableOrStepAreRefused) {
  const std::unique_ptr<SparseTable> table = EmptyTable();
  AddRows(*table, 500);
  const std::vector<std::string> before = Save(*table, "before", 2);
  AddRows(*table, 500);
  const std::vector<std::string> now = Save(*table, "now", 2);
  EXPECT_EQ(Failure({now[0], before[1]}),
            "table \"t\": \"" + before[1] + "\" is of table \"t\" after 1 updates, and \"" + now[0] +
                "\" of table \"t\" after 2: they are not of one save; copy all files of the folder again, or use "
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
  EXPECT_THAT(EmptyTable()->Load(kAllShards, in).message(), HasSubstr("which the file is not to hold"));
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
  EXPECT_EQ(CountTableFiles(*table, TableContent::kAll), 1);
  AddRows(*table, 128);
  EXPECT_EQ(CountTableFiles(*table, TableContent::kAll), 2);
  EXPECT_EQ(CountTableFiles(*table, TableContent::kWeights), 1);
  EXPECT_EQ(CountTableFiles(*EmptyTable(), TableContent::kAll), 1);
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
  const Status status = LoadTable({folder_ + "/old"}, kAllShards, 2, table.get());
  ASSERT_TRUE(status.ok()) << status.ToString();
  RowBatch rows;
  ASSERT_TRUE(table->Pull(keys, PullMode::kReadOnly, &rows).ok());
  EXPECT_TRUE(rows.missing().empty());
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(rows.weights()[i][1], static_cast<float>(2 * i + 1));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::istringstream cut(bytes.substr(0, i));
    EXPECT_EQ(EmptyTable("t", 2)->Load(kAllShards, cut).code(), StatusCode::kBadData) << "cut at " << i;
  }
  const std::unique_ptr<SparseTable> part = EmptyTable("t", 2);
  ASSERT_TRUE(LoadTable({folder_ + "/old"}, {0, 512}, 2, part.get()).ok());
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
  EXPECT_EQ(LoadTable(paths, kAllShards, 2, EmptyTable().get(), stop.get_token()).code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace millrace
