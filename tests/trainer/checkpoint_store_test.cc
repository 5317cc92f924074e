#include "trainer/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/sealed_text.h"

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
  Status Read() const { return ReadCheckpoint(path(), Fits, 1).status(); }
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
  EXPECT_EQ(store->FindNewest(Fits, &refused, stop.get_token()).status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(refused.empty()) << refused[0];
}

}  // namespace
}  // namespace millrace
