#include "checkpoint/checkpoint_store.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/folder_entries.h"
#include "core/sealed_text.h"
#include "model.pb.h"
#include "runtime/variable_store.h"
#include "sanitized.h"
#include "table/hash_table.h"

namespace millrace {
namespace {

using testing::HasSubstr;

Status Fits(const CheckpointManifest&) { return Status::Ok(); }

/// The folder of step 7 with a sealed manifest, and no variables.
class StepSeven {
 public:
  explicit StepSeven(const std::string& manifest) {
    std::filesystem::create_directories(path());
    std::ofstream(path() + "/MANIFEST") << SealText("format_version: 1 " + manifest + "\n");
    std::ofstream(path() + "/metrics") << "sums";
  }
  std::string path() const { return folder_.path() + "/step-000000000007"; }
  Status Read() const { return ReadCheckpoint(path(), Fits, CheckedFiles::kAll).status(); }
  Status FindNewest() const {
    const Result<CheckpointStore> store = CheckpointStore::Create(folder_.path(), 1, 1);
    std::vector<std::string> refused;
    return store.ok() ? store->FindNewest(Fits, &refused).status() : store.status();
  }

 private:
  TempDir folder_ = TempDir::Create("step_seven").value();
};

TEST(ManifestNumbers, ThatNoRunHasAreRefused) {
  const Status whole = StepSeven("step: 7 input_rows: 9 ledger: \"0: 0-4 6-9\\n\"").Read();
  EXPECT_TRUE(whole.ok()) << whole.message();
  for (const auto& [manifest, message] :
       {std::pair{"step: -1", "numbers that no run has: step -1"},
        std::pair{"step: 9223372036854775807", "numbers that no run has: step 9223372036854775807"},
        std::pair{"step: 7 examples: -5 input_rows: -2", "numbers that no run has: examples -5, input_rows -2"},
        std::pair{"step: 7 evaluated_step: 8", "numbers that no run has: evaluated_step 8"},
        std::pair{"step: 7 input_rows: 9 ledger: \"0: 0-10\\n\"", "rows that its input has not"},
        std::pair{"step: 7 input_file: \"a\" ledger: \"1: 1-2\\n\"", "rows that its input has not: 1 sources"}}) {
    const Status read = StepSeven(manifest).Read();
    EXPECT_EQ(read.code(), StatusCode::kBadData) << manifest;
    EXPECT_THAT(read.message(), HasSubstr(message)) << manifest;
  }
}

TEST(ManifestNumbers, OfAnotherStepThanTheFolderAreRefused) {
  const Status same = StepSeven("step: 7").FindNewest();
  EXPECT_TRUE(same.ok()) << same.message();
  EXPECT_THAT(StepSeven("step: 8").FindNewest().message(), HasSubstr("its MANIFEST is of step 8"));
}

TEST(ManifestFiles, OutsideTheFolderAreRefused) {
  for (const char* name : {"../secret", "/etc/hostname"}) {
    const Status read = StepSeven("step: 7 file { name: \"" + std::string(name) + "\" }").Read();
    EXPECT_EQ(read.code(), StatusCode::kBadData);
    EXPECT_THAT(read.message(), HasSubstr("\"" + std::string(name) + "\", which lies outside it"));
  }
}

TEST(ManifestFiles, ANamedPipeIsNotWaitedFor) {
  const StepSeven step("step: 7");
  std::filesystem::remove(step.path() + "/MANIFEST");
  ASSERT_EQ(::mkfifo((step.path() + "/MANIFEST").c_str(), 0600), 0);
  EXPECT_THAT(step.Read().message(), HasSubstr("is a named pipe, and a plain file belongs there"));
  EXPECT_EQ(step.FindNewest().code(), StatusCode::kBadData);
}

/// A checkpoint of one variable.
Status WriteStep(CheckpointStore& store, int64_t step, const LongWork& work = {}) {
  ProgramDesc program;
  VarDesc& var = *program.add_blocks()->add_vars();
  var.set_name("w");
  var.set_persistable(true);
  var.mutable_type()->set_type(VarType::LOD_TENSOR);
  Scope scope;
  *scope.Var("w")->GetMutable<Tensor>()->Resize<float>({1}) = 1;
  CheckpointContent content;
  content.manifest.set_step(step);
  content.manifest.set_run_id(1);
  return store.Write(content, program, scope, work);
}

// A manifest lists every input file, and all that were kept were parsed for each checkpoint.
TEST(CheckpointStoreTest, ManifestsOfItsOwnAreNotReadAgain) {
  const TempDir folder = TempDir::Create("own_manifests").value();
  Result<CheckpointStore> store = CheckpointStore::Create(folder.path(), 2, 1);
  ASSERT_TRUE(store.ok()) << store.status().message();
  ASSERT_TRUE(WriteStep(*store, 1).ok());
  const std::string first = folder.path() + "/step-000000000001";
  std::ofstream(first + "/MANIFEST") << "no manifest: who reads it removes the folder";
  ASSERT_TRUE(WriteStep(*store, 2).ok());
  EXPECT_TRUE(std::filesystem::exists(first));
  ASSERT_TRUE(WriteStep(*store, 3).ok());
  EXPECT_FALSE(std::filesystem::exists(first)) << "two are kept";
}

// One that another process wrote is read.
TEST(CheckpointStoreTest, OthersRunsAreRemovedByTheFirstCheckpoint) {
  const TempDir folder = TempDir::Create("other_run").value();
  const std::string other = folder.path() + "/step-000000000002";
  std::filesystem::create_directories(other);
  std::ofstream(other + "/MANIFEST") << SealText("format_version: 1 step: 2 run_id: 5\n");
  Result<CheckpointStore> store = CheckpointStore::Create(folder.path(), 2, 1);
  ASSERT_TRUE(store.ok()) << store.status().message();
  ASSERT_TRUE(WriteStep(*store, 3).ok());
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST(CheckpointStoreTest, OneThatAStopGaveUpLeavesThatOfBeforeAndNothingElse) {
  const TempDir folder = TempDir::Create("given_up").value();
  Result<CheckpointStore> store = CheckpointStore::Create(folder.path(), 1, 1);
  ASSERT_TRUE(store.ok()) << store.status().message();
  ASSERT_TRUE(WriteStep(*store, 1).ok());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(WriteStep(*store, 2, {stop.get_token(), {}}).code(), StatusCode::kCancelled);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  EXPECT_EQ(names, std::vector<std::string>{"step-000000000001"});
  std::vector<std::string> refused;
  EXPECT_EQ(store->FindNewest(Fits, &refused)->value().manifest.step(), 1);
  EXPECT_EQ(store->FindNewest(Fits, &refused, {stop.get_token()}).status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(refused.empty()) << refused[0];
}

constexpr char kOthersShowIt[] = "sanitizers make large tables slow";  // others of these tests write as many files

/// A table that is large enough to be saved by its changes, and checkpoints of it.
class LargeTableCheckpoints : public testing::Test {
 protected:
  LargeTableCheckpoints() {
    TableDesc desc;
    desc.set_name("t");
    desc.set_dim(kDim);
    desc.mutable_optimizer()->mutable_adagrad();
    VarDesc& var = *program_.add_blocks()->add_vars();
    var.set_name("t");
    var.set_persistable(true);
    var.mutable_type()->set_type(VarType::SPARSE_TABLE);
    VarDesc::Attr& attr = *var.add_attrs();
    attr.set_name(std::string(kTableAttr));
    attr.set_type(AttrType::STRING);
    google::protobuf::TextFormat::PrintToString(desc, attr.mutable_s());
    scope_.Var("t")->Set(CreateHashTable(desc, 1).value());
    Push(0, 300);
  }
  SparseTable& table() { return *scope_.Find("t")->Get<std::unique_ptr<SparseTable>>(); }
  void Push(uint64_t begin, uint64_t end) {
    std::vector<uint64_t> keys(end - begin);
    std::iota(keys.begin(), keys.end(), begin);
    RowBatch rows;
    ASSERT_TRUE(table().Pull(keys, PullMode::kInsert, &rows).ok());
    const std::vector<float> gradients(keys.size() * kDim, 0.5F);
    ASSERT_TRUE(table().Push(rows, gradients, {0.1F, nullptr}).ok());
  }
  Status Write(int64_t step, const LongWork& work = {}, int full_every = 20) {
    CheckpointContent content;
    content.manifest.set_step(step);
    content.manifest.set_run_id(1);
    content.full_every = full_every;
    return store_.Write(content, program_, scope_, work);
  }
  /// Whether the newest checkpoint has what the table has, and how many times changes.
  int ChangesOfWhatIsRestored() {
    std::vector<std::string> refused;
    const auto found = store_.FindNewest(Fits, &refused);
    EXPECT_TRUE(found.ok() && found->has_value()) << found.status().message();
    TableDesc desc;
    const StoredVariable& variable = (*found)->manifest.variable(0);
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(variable.table(), &desc));
    Scope scope;
    scope.Var("t")->Set(CreateHashTable(desc, 1).value());
    const Status restored = RestoreVariables((*found)->folder, {variable}, scope, nullptr, 2);
    EXPECT_TRUE(restored.ok()) << restored.message();
    EXPECT_TRUE(BytesOf(*scope.Find("t")->Get<std::unique_ptr<SparseTable>>()) == BytesOf(table()));
    return variable.changes_size();
  }
  static std::string BytesOf(const SparseTable& table) {
    std::ostringstream out;
    EXPECT_TRUE(table.Save(kAllShards, TableContent::kAll, out).ok());
    return std::move(out).str();
  }

  static constexpr int kDim = 16384;
  TempDir folder_ = TempDir::Create("large_table").value();
  CheckpointStore store_ = CheckpointStore::Create(folder_.path(), 2, 2).value();
  ProgramDesc program_;
  Scope scope_;
};

TEST_F(LargeTableCheckpoints, ThatWereCheckedAreReadWithoutTheFilesOfTablesWhichTellOfDamage) {
  ASSERT_TRUE(Write(1).ok());
  std::vector<std::string> refused;
  const FoundCheckpoint found = **store_.FindNewest(Fits, &refused);
  const StoredVariable& variable = found.manifest.variable(0);
  const std::string damaged = found.folder + "/" + variable.file(0);
  std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(damaged) / 2));
  file << "damage";
  file.close();
  const auto read = [&](CheckedFiles checked) { return ReadCheckpoint(found.folder, Fits, checked).status(); };
  EXPECT_THAT(read(CheckedFiles::kAll).message(), HasSubstr("\"" + damaged + "\" is damaged"));
  EXPECT_TRUE(read(CheckedFiles::kButThoseOfTables).ok());
  TableDesc desc;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(variable.table(), &desc));
  Scope scope;
  scope.Var("t")->Set(CreateHashTable(desc, 1).value());
  EXPECT_THAT(RestoreVariables(found.folder, {variable}, scope, nullptr, 2).message(), HasSubstr(damaged));
  std::ofstream(found.folder + "/parameters", std::ios::app) << "more";
  EXPECT_EQ(read(CheckedFiles::kButThoseOfTables).code(), StatusCode::kBadData);
}

TEST_F(LargeTableCheckpoints, HaveWhatChangedUntilThatIsHalfOfAllRows) {
  std::vector<int> changes;
  for (int step = 1; step <= 7; ++step) {
    ASSERT_TRUE(Write(step).ok());
    changes.push_back(ChangesOfWhatIsRestored());
    Push(static_cast<uint64_t>(10 * step), static_cast<uint64_t>(10 * step) + 40);
  }
  EXPECT_THAT(changes, testing::ElementsAre(0, 1, 2, 3, 0, 1, 2));
}

TEST_F(LargeTableCheckpoints, HaveAllRowsAsOftenAsIsWanted) {
  if (kIsSanitized) GTEST_SKIP() << kOthersShowIt;
  std::vector<int> changes;
  for (int step = 1; step <= 6; ++step) {
    ASSERT_TRUE(Write(step, {}, 3).ok());
    changes.push_back(ChangesOfWhatIsRestored());
    Push(5, 6);
  }
  EXPECT_THAT(changes, testing::ElementsAre(0, 1, 2, 0, 1, 2));
}

// What a checkpoint that was not written would have had, the next one has.
TEST_F(LargeTableCheckpoints, BehindOneThatFailedHaveItsChanges) {
  ASSERT_TRUE(Write(1).ok());
  Push(0, 20);
  std::stop_source stop;
  stop.request_stop();
  ASSERT_EQ(Write(2, {stop.get_token(), {}}).code(), StatusCode::kCancelled);
  Push(290, 310);
  ASSERT_TRUE(Write(3).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 1);
}

TEST_F(LargeTableCheckpoints, OfTheSameStepTakeThePlaceOfTheOneThatTheyGoOnFrom) {
  ASSERT_TRUE(Write(1).ok());
  Push(0, 20);
  ASSERT_TRUE(Write(1).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 1);
}

// Rows that are new are read once, wherever they lie.
TEST_F(LargeTableCheckpoints, HaveNewRowsAloneHoweverManyThereAre) {
  if (kIsSanitized) GTEST_SKIP() << kOthersShowIt;
  ASSERT_TRUE(Write(1).ok());
  for (int step = 2; step <= 5; ++step) {
    Push(static_cast<uint64_t>(300 * step), static_cast<uint64_t>(300 * step) + 300);
    ASSERT_TRUE(Write(step).ok());
    EXPECT_EQ(ChangesOfWhatIsRestored(), step - 1);
  }
}

TEST_F(LargeTableCheckpoints, InAHurryHaveWhatChangedHoweverManyThereWere) {
  if (kIsSanitized) GTEST_SKIP() << kOthersShowIt;
  ASSERT_TRUE(Write(1).ok());
  Push(0, 290);
  CheckpointContent content;
  content.manifest.set_step(2);
  content.manifest.set_run_id(1);
  content.full_every = 2;
  content.hurries = true;
  ASSERT_TRUE(store_.Write(content, program_, scope_).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 1);
  Push(0, 1);
  content.manifest.set_step(3);
  ASSERT_TRUE(store_.Write(content, program_, scope_).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 2);
  content.manifest.set_step(4);
  content.hurries = false;
  ASSERT_TRUE(store_.Write(content, program_, scope_).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 0);
}

// The files of the one before are gone, or on a file system without links.
TEST_F(LargeTableCheckpoints, ThatCannotShareFilesHaveAllRows) {
  if (kIsSanitized) GTEST_SKIP() << kOthersShowIt;
  ASSERT_TRUE(Write(1).ok());
  Push(0, 20);
  ASSERT_TRUE(Write(2).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 1);
  Push(0, 20);
  std::filesystem::remove(folder_.path() + "/step-000000000002/changes/1/t");
  ASSERT_TRUE(Write(3).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/step-000000000003/changes"));
}

TEST_F(LargeTableCheckpoints, TakeTheBytesOfWhatChanged) {
  ASSERT_TRUE(Write(1).ok());
  Push(0, 20);
  CheckpointContent content;
  content.full_every = 20;
  const uint64_t told = store_.BytesToWrite(content, program_, scope_);
  EXPECT_EQ(SaveSize::Of(program_, scope_).BytesToWrite(true), told) << "a look from outside";
  std::atomic<uint64_t> written{0};
  ASSERT_TRUE(Write(2, {{}, [&written](uint64_t bytes) { written += bytes; }}).ok());
  EXPECT_NEAR(static_cast<double>(told), 20.0 * 8 * kDim, 1000);
  EXPECT_NEAR(static_cast<double>(written), static_cast<double>(told), 10000);
  EXPECT_EQ(std::filesystem::hard_link_count(folder_.path() + "/step-000000000002/tables/t/0512-1023"), 2);
}

/// A tensor that is large enough to be saved by what changed, a small one, and checkpoints of them.
class LargeTensorCheckpoints : public testing::Test {
 protected:
  LargeTensorCheckpoints() {
    BlockDesc& block = *program_.add_blocks();
    for (const char* name : {"small", "wide"}) {
      VarDesc& var = *block.add_vars();
      var.set_name(name);
      var.set_persistable(true);
      var.mutable_type()->set_type(VarType::LOD_TENSOR);
    }
    std::fill_n(scope_.Var("small")->GetMutable<Tensor>()->Resize<float>({3}), 3, 0.5F);
    float* const wide = scope_.Var("wide")->GetMutable<Tensor>()->Resize<float>({kRows, kDim});
    std::iota(wide, wide + kRows * kDim, 0.0F);
  }
  float* Wide() { return scope_.Find("wide")->GetMutable<Tensor>()->Resize<float>({kRows, kDim}); }
  void Change(int first_row, int rows) {
    for (int64_t i = int64_t{kDim} * first_row; i < int64_t{kDim} * (first_row + rows); ++i) Wide()[i] += 1;
    scope_.Find("small")->GetMutable<Tensor>()->Resize<float>({3})[0] += 1;
  }
  CheckpointContent Content(int64_t step) const {
    CheckpointContent content;
    content.manifest.set_step(step);
    content.manifest.set_run_id(1);
    content.full_every = 20;
    return content;
  }
  Status Write(int64_t step) { return store_.Write(Content(step), program_, scope_); }
  FoundCheckpoint Newest() {
    std::vector<std::string> refused;
    const auto found = store_.FindNewest(Fits, &refused);
    EXPECT_TRUE(found.ok() && found->has_value()) << found.status().message();
    return **found;
  }
  /// Whether the newest checkpoint has what the variables have, and how many times changes.
  int ChangesOfWhatIsRestored() {
    const FoundCheckpoint found = Newest();
    const auto& variables = found.manifest.variable();
    Scope scope;
    const Status restored = RestoreVariables(found.folder, {variables.begin(), variables.end()}, scope, nullptr, 2);
    EXPECT_TRUE(restored.ok()) << restored.message();
    for (const char* name : {"small", "wide"}) {
      const Tensor& was = scope_.Find(name)->Get<Tensor>();
      const Tensor& is = scope.Find(name)->Get<Tensor>();
      EXPECT_TRUE(is.dims() == was.dims());
      EXPECT_EQ(std::memcmp(is.raw_data(), was.raw_data(), BytesOf(was)), 0) << name;
    }
    return variables[1].changes_size();
  }
  std::string ChangesFile(int64_t step, int changes) const {
    return folder_.path() + "/step-00000000000" + std::to_string(step) + "/changes/" + std::to_string(changes) +
           "/wide";
  }

  static constexpr int kRows = 131075;  // the last block is shorter
  static constexpr int kDim = 65;
  TempDir folder_ = TempDir::Create("large_tensor").value();
  CheckpointStore store_ = CheckpointStore::Create(folder_.path(), 9, 2).value();
  ProgramDesc program_;
  Scope scope_;
};

TEST_F(LargeTensorCheckpoints, HaveTheBlocksThatChanged) {
  ASSERT_TRUE(Write(1).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 0);
  Change(7, 1);
  Change(kRows - 1, 1);
  ASSERT_TRUE(Write(2).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 1);
  EXPECT_LT(std::filesystem::file_size(ChangesFile(2, 1)), 3 * kTensorBlock + 100);
  EXPECT_EQ(std::filesystem::hard_link_count(folder_.path() + "/step-000000000002/tensors/wide"), 2);
  EXPECT_EQ(Newest().manifest.format_version(), 2);
  Change(7, 2);
  ASSERT_TRUE(Write(3).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 2);
  Change(0, kRows / 2 + 100);
  ASSERT_TRUE(Write(4).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 0) << "more than half changed";
}

TEST_F(LargeTensorCheckpoints, OfARunThatGoesOnHaveWhatChangedSince) {
  ASSERT_TRUE(Write(1).ok());
  CheckpointStore again = CheckpointStore::Create(folder_.path(), 9, 2).value();
  ASSERT_TRUE(again.ResumeFrom(Newest(), scope_).ok());
  Change(9, 3);
  ASSERT_TRUE(again.Write(Content(2), program_, scope_).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 1);
}

TEST_F(LargeTensorCheckpoints, OfABlocksFileThatIsBrokenAreRefused) {
  ASSERT_TRUE(Write(1).ok());
  Change(9, 3);
  ASSERT_TRUE(Write(2).ok());
  const std::string path = ChangesFile(2, 1);
  const std::string whole = ReadFile(path).value();
  std::vector<char> values(size_t{kRows} * kDim * sizeof(float));
  EXPECT_TRUE(ReadBlocksFile(path, values, {}).ok());
  const auto read = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return ReadBlocksFile(path, values, {});
  };
  for (const size_t size : {size_t{0}, size_t{31}, size_t{35}, whole.size() - 1}) {
    EXPECT_EQ(read(whole.substr(0, size)).code(), StatusCode::kBadData) << size;
  }
  EXPECT_THAT(read(whole + "x").message(), HasSubstr("bytes follow its last block"));
  EXPECT_THAT(read("x" + whole.substr(1)).message(), HasSubstr("does not begin as a file of blocks"));
  std::string beyond = whole;
  beyond[34] = 1;  // the third byte of the first block's number
  EXPECT_THAT(read(beyond).message(), HasSubstr("the tensor has no block"));
  values.resize(values.size() - 4);
  EXPECT_THAT(read(whole).message(), HasSubstr("it is of a tensor of"));
  // A checkpoint says so before anything is read.
  std::vector<std::string> refused;
  EXPECT_EQ(store_.FindNewest(Fits, &refused)->value().manifest.step(), 2);
  EXPECT_FALSE(read(beyond).ok());
  EXPECT_EQ(store_.FindNewest(Fits, &refused)->value().manifest.step(), 1);
  EXPECT_THAT(refused, testing::ElementsAre(HasSubstr("changes/1/wide\" is damaged")));
}

TEST_F(LargeTensorCheckpoints, ThatCannotShareFilesHaveAllValues) {
  if (kIsSanitized) GTEST_SKIP() << kOthersShowIt;
  ASSERT_TRUE(Write(1).ok());
  std::filesystem::remove(folder_.path() + "/step-000000000001/tensors/wide");
  Change(9, 3);
  ASSERT_TRUE(Write(2).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 0);
  Change(9, 3);
  std::filesystem::remove_all(folder_.path() + "/step-000000000002");
  ASSERT_TRUE(Write(3).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 0);
}

TEST_F(LargeTensorCheckpoints, OfATensorWithAnotherShapeHaveAllValues) {
  if (kIsSanitized) GTEST_SKIP() << kOthersShowIt;
  ASSERT_TRUE(Write(1).ok());
  scope_.Find("wide")->GetMutable<Tensor>()->Resize<float>({kDim, kRows});
  ASSERT_TRUE(Write(2).ok());
  EXPECT_EQ(ChangesOfWhatIsRestored(), 0);
}

// Whoever asked for the others still has them.
TEST_F(LargeTensorCheckpoints, ThatNobodyAskedForTakeNoPlaceOfOthers) {
  if (kIsSanitized) GTEST_SKIP() << kOthersShowIt;
  CheckpointStore store = CheckpointStore::Create(folder_.path(), 2, 1).value();
  for (int64_t step = 1; step <= 6; ++step) {
    CheckpointContent content = Content(step);
    content.is_between = step == 2 || step == 4 || step == 5;
    ASSERT_TRUE(store.Write(content, program_, scope_).ok());
    if (step == 5) {
      EXPECT_EQ(Newest().manifest.step(), 5);
    }
  }
  std::vector<std::string> names = NamesIn(folder_.path()).value();
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names, testing::ElementsAre("step-000000000003", "step-000000000006"));

  // A run that goes on knows which these are.
  CheckpointContent between = Content(7);
  between.is_between = true;
  ASSERT_TRUE(store.Write(between, program_, scope_).ok());
  CheckpointStore again = CheckpointStore::Create(folder_.path(), 2, 1).value();
  ASSERT_TRUE(again.Write(Content(8), program_, scope_).ok());
  names = NamesIn(folder_.path()).value();
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names, testing::ElementsAre("step-000000000006", "step-000000000008"));
}

}  // namespace
}  // namespace millrace
