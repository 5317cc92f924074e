// Tables that are saved in several files: checkpoints and models of them, whole and damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

constexpr char kEvery[] =
    "update_mode: SERIAL epochs: 2 checkpoint { every_steps: 12 keep: 3 } output { tensorboard: false }";

/// DeepJob with rows so wide that its checkpoints have four files of the table, and its models two.
std::string WideJob(const SmallJob& small, const std::string& extra) {
  const std::string path = small.DeepJob(extra);
  std::string text = ReadFile(path).value();
  const std::string dim = "dim: 4 ";
  text.replace(text.find(dim), dim.size(), "dim: 16384 ");
  std::ofstream(path) << text;
  return path;
}

int Train(const std::string& job, const std::string& out, const std::string& resume, std::string* errors,
          size_t file_size_limit = 0) {
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=" + resume},
                  {.file_size_limit = file_size_limit, .input = "/dev/null"});
  const int code = trainer.Wait();
  *errors = trainer.errors();
  return code;
}

std::string Checkpoint(const std::string& out, const std::string& step) { return out + "/checkpoints/step-" + step; }

TEST(LargeTable, IsSavedInFilesAndAKillWithinTheSaveLosesNothing) {
  const SmallJob small(800, 1);
  const std::string job = WideJob(small, kEvery);
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

TEST(LargeTable, WithoutOneOfItsFilesIsRefusedByTheNamesOfFileAndTable) {
  const SmallJob small(800, 1);
  const std::string job = WideJob(small, kEvery);
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

TEST(LargeTable, OnAFullDiskLeavesWholeCheckpointsOnly) {
  const SmallJob small(800, 1);
  const std::string job = WideJob(small, kEvery);
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

}  // namespace
}  // namespace millrace
