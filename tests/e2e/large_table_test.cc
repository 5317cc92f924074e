// Tables that are saved in several files: checkpoints and models of them, whole and damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/file.h"
#include "e2e/killed_job.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "sanitized.h"

namespace millrace {
namespace {

using testing::HasSubstr;

constexpr char kEvery[] =
    "update_mode: SERIAL epochs: 2 checkpoint { every_steps: 12 keep: 3 full_every: 1 } output { tensorboard: false }";

int Train(const std::string& job, const std::string& out, const std::string& resume, std::string* errors,
          size_t file_size_limit = 0) {
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=" + resume},
                  {.file_size_limit = file_size_limit, .input = "/dev/null"});
  const int code = trainer.Wait();
  *errors = trainer.errors();
  return code;
}

std::string Checkpoint(const std::string& out, const std::string& step) { return out + "/checkpoints/step-" + step; }

/// Tables of more than 32 MiB: of the same code under sanitizers tests/trainer has smaller ones.
class LargeTable : public testing::Test {
 protected:
  void SetUp() override {
    if (kIsSanitized) GTEST_SKIP() << "sanitizers make large tables slow";
  }
};

TEST_F(LargeTable, IsSavedInFilesAndAKillWithinTheSaveLosesNothing) {
  const SmallJob small(800, 1);
  const std::string job = small.WideJob(kEvery);
  const std::string calm = small.folder() + "/calm";
  std::string errors;
  ASSERT_EQ(Train(job, calm, "never", &errors), 0) << errors;
  for (const char* range : {"0000-0255", "0256-0511", "0512-0767", "0768-1023"}) {
    EXPECT_TRUE(std::filesystem::exists(Checkpoint(calm, "000000000036/tables/t/") + range)) << range;
  }
  EXPECT_TRUE(std::filesystem::exists(calm + "/model/tables/t/0512-1023"));

  const std::string out = small.folder() + "/killed";
  const std::string begun = out + "/checkpoints/.writing-step-000000000036/tables/t/0256-0511";
  {
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=never"});
    while (!std::filesystem::exists(begun) && !std::filesystem::exists(out + "/model")) std::this_thread::yield();
    trainer.Signal(SIGKILL);
    trainer.Wait();
  }
  ASSERT_EQ(Train(job, out, "auto", &errors), 0) << errors;
  EXPECT_THAT(errors, HasSubstr("going on from"));
  EXPECT_TRUE(FolderContent(out + "/model") == FolderContent(calm + "/model"));
  EXPECT_EQ(ScoresOf(out, small.files()), ScoresOf(calm, small.files()));
}

TEST_F(LargeTable, WithoutOneOfItsFilesIsRefusedByTheNamesOfFileAndTable) {
  const SmallJob small(800, 1);
  const std::string job = small.WideJob(kEvery);
  const std::string out = small.folder() + "/out";
  std::string errors;
  ASSERT_EQ(Train(job, out, "never", &errors), 0) << errors;
  const std::vector<std::string> model = FolderContent(out + "/model");
  const std::string newest = Checkpoint(out, "000000000050/tables/t/");
  const std::string second = Checkpoint(out, "000000000048/tables/t/");
  const std::string oldest = Checkpoint(out, "000000000036/tables/t/");
  std::filesystem::remove(newest + "0512-0767");
  std::filesystem::copy_file(oldest + "0256-0511", second + "0256-0511",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(oldest + "0000-1023") << "what no manifest lists is not looked at";
  ASSERT_EQ(Train(job, out, "auto", &errors), 0) << errors;
  EXPECT_THAT(errors,
              HasSubstr("no such file: \"" + newest +
                        "0512-0767\"; it is of table \"t\": copy all files of the folder again, or use another one"));
  EXPECT_THAT(errors, HasSubstr("\"" + second + "0256-0511\" is"));
  EXPECT_THAT(errors, HasSubstr("going on from \"" + Checkpoint(out, "000000000036\"")));
  EXPECT_TRUE(FolderContent(out + "/model") == model);

  std::filesystem::resize_file(out + "/model/tables/t/0512-1023", 1000);
  Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0]});
  EXPECT_EQ(predictor.Wait(), 3);
  EXPECT_THAT(predictor.errors(), HasSubstr("tables/t/0512-1023\" is damaged"));
  EXPECT_THAT(predictor.errors(), HasSubstr("it has 1000; it is of table \"t\": copy all files"));
}

TEST_F(LargeTable, OnAFullDiskLeavesWholeCheckpointsOnly) {
  const SmallJob small(800, 1);
  const std::string job = small.WideJob(kEvery);
  const std::string out = small.folder() + "/out";
  std::string errors;
  EXPECT_EQ(Train(job, out, "never", &errors, 10000000), 3);
  EXPECT_THAT(errors, HasSubstr("/tables/t/0"));
  EXPECT_THAT(errors, HasSubstr("File too large"));
  for (const auto& entry : std::filesystem::directory_iterator(out + "/checkpoints")) {
    EXPECT_EQ(entry.path().filename(), "RUN");
  }
  EXPECT_EQ(Train(job, out, "auto", &errors), 0) << errors;
}

/// A job of which most checkpoints have what changed since the one before.
std::string JobOfChanges(const SmallJob& small, int full_every = 20) {
  const std::string path = small.WideJob(
      "update_mode: SERIAL epochs: 2 output { tensorboard: false } checkpoint { every_steps: 4 keep: 100 "
      "full_every: " +
      std::to_string(full_every) + " }");
  std::string text = ReadFile(path).value();
  const std::string batch = "batch_size: 32";
  text.replace(text.find(batch), batch.size(), "batch_size: 8");
  std::ofstream(path) << text;
  return path;
}

std::string NewestCheckpointWith(const std::string& out, const std::string& file) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(out + "/checkpoints")) {
    if (std::filesystem::exists(entry.path() / file)) newest = std::max(newest, entry.path().string());
  }
  EXPECT_FALSE(newest.empty());
  return newest;
}

/// The newest checkpoint of a run whose table has changes of changes.
std::string NewestWithChanges(const std::string& out) { return NewestCheckpointWith(out, "changes/2/t"); }

TEST_F(LargeTable, IsSavedByItsChangesAndAKilledRunGoesOnToTheSameModel) {
  const SmallJob small(300, 1);
  const std::string job = JobOfChanges(small);
  std::string errors;
  const std::string calm = small.folder() + "/calm";
  ASSERT_EQ(Train(job, calm, "never", &errors), 0) << errors;
  const auto [with_changes, all] = CountCheckpointsWith(calm, "changes/1/t");
  EXPECT_GE(with_changes, 5);
  EXPECT_LT(with_changes, all) << "when changes are more than half of the rows, all of them are written";
  EXPECT_GE(CountCheckpointsWith(calm, "changes/2/t").first, 1);
  Process inspect("inspect", {"table", NewestWithChanges(calm) + "/changes/2/t"});
  EXPECT_EQ(inspect.Wait(), 0) << inspect.errors();
  EXPECT_THAT(inspect.output(), HasSubstr(" updates: those that changed since update "));

  const std::string killed = small.folder() + "/killed";
  ASSERT_NO_FATAL_FAILURE(TrainKilled(job, killed, 4, 40));
  EXPECT_TRUE(FolderContent(killed + "/model") == FolderContent(calm + "/model"));

  const std::string whole = small.folder() + "/whole";
  ASSERT_EQ(Train(JobOfChanges(small, 1), whole, "never", &errors), 0) << errors;
  EXPECT_EQ(CountCheckpointsWith(whole, "changes").first, 0);
  EXPECT_TRUE(ParametersOf(whole + "/model") == ParametersOf(calm + "/model"));
}

// A table with a vocabulary is a tensor, and so is its optimizer's state.
TEST_F(LargeTable, OfAVocabularyIsSavedByItsBlocksAndAKilledRunGoesOnToTheSameModel) {
  const SmallJob small(300, 1);
  const std::string job = JobOfChanges(small);
  std::string text = ReadFile(job).value();
  const std::string growing = "key: SLOT_AND_ID ";
  text.replace(text.find(growing), growing.size(), "vocabulary: 600 ");
  std::ofstream(job) << text;
  std::string errors;
  const std::string calm = small.folder() + "/calm";
  ASSERT_EQ(Train(job, calm, "never", &errors), 0) << errors;
  EXPECT_GE(CountCheckpointsWith(calm, "changes/2").first, 1);
  std::set<std::string> of_tensors;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(NewestCheckpointWith(calm, "changes/2"))) {
    if (entry.path().parent_path().filename() == "tensors") of_tensors.insert(entry.path().filename());
  }
  EXPECT_GE(of_tensors.size(), 2) << "of weights and of state";

  const std::string killed = small.folder() + "/killed";
  ASSERT_NO_FATAL_FAILURE(TrainKilled(job, killed, 4, 40));
  EXPECT_TRUE(FolderContent(killed + "/model") == FolderContent(calm + "/model"));
}

TEST_F(LargeTable, OfChangesIsWholeInAFolderThatWasCopiedElsewhere) {
  const SmallJob small(300, 1);
  const std::string job = JobOfChanges(small);
  std::string errors;
  const std::string out = small.folder() + "/out";
  ASSERT_EQ(Train(job, out, "never", &errors), 0) << errors;
  const std::string copy = small.folder() + "/copy";
  std::filesystem::copy(NewestWithChanges(out), copy, std::filesystem::copy_options::recursive);
  std::filesystem::rename(out + "/checkpoints", out + "/others");
  const std::string again = small.folder() + "/again";
  ASSERT_EQ(Train(job, again, copy, &errors), 0) << errors;
  EXPECT_TRUE(FolderContent(again + "/model") == FolderContent(out + "/model"));
}

TEST_F(LargeTable, WhoseChangesAreDamagedIsRefusedForAnOlderOne) {
  const SmallJob small(300, 1);
  const std::string job = JobOfChanges(small);
  std::string errors;
  const std::string out = small.folder() + "/out";
  ASSERT_EQ(Train(job, out, "never", &errors), 0) << errors;
  const std::vector<std::string> model = FolderContent(out + "/model");
  const std::string damaged = NewestWithChanges(out) + "/changes/2/t";
  std::filesystem::resize_file(damaged, std::filesystem::file_size(damaged) - 1);
  ASSERT_EQ(Train(job, out, NewestWithChanges(out), &errors), 3);
  EXPECT_THAT(errors, HasSubstr("\"" + damaged + "\" is damaged"));
  EXPECT_THAT(errors, HasSubstr("it is of table \"t\": copy all files"));
  ASSERT_EQ(Train(job, out, "auto", &errors), 0) << errors;
  EXPECT_TRUE(FolderContent(out + "/model") == model);
}

}  // namespace
}  // namespace millrace
