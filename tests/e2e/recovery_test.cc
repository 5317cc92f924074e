#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/file.h"
#include "core/rng.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

std::vector<std::string> TrainerFlags(const std::string& job, const std::string& out, const std::string& resume) {
  return {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=" + resume};
}

// Runs a job, killed after a random number of printed lines again and again, at last to its end.
void TrainWithKills(const std::string& job, const std::string& out, uint64_t seed, int kills, int most_lines) {
  Rng rng(seed);
  for (int kill = 0; kill < kills; ++kill) {
    Process trainer("trainer", TrainerFlags(job, out, "auto"));
    const auto lines = static_cast<int>(rng.Below(static_cast<uint64_t>(most_lines)));
    std::string line;
    for (int i = 0; i < lines && trainer.ReadLine(&line); ++i) {
    }
    trainer.Signal(SIGKILL);
    trainer.Wait();
  }
  Process trainer("trainer", TrainerFlags(job, out, "auto"));
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
}

struct SerialCase {
  const char* name;
  const char* job;
};

class KilledSerialRun : public testing::TestWithParam<SerialCase> {};

TEST_P(KilledSerialRun, EndsWithTheBytesOfAnUndisturbedOne) {
  const SmallJob small(2500);
  const std::string job =
      small.DeepJob(std::string("update_mode: SERIAL epochs: 2 checkpoint { every_steps: 10 } output { tensorboard: "
                                "false } ") +
                    GetParam().job);
  const std::string calm = small.folder() + "/calm";
  Process undisturbed("trainer", TrainerFlags(job, calm, "never"));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.errors();
  const std::vector<std::string> expected = FolderContent(calm + "/model");
  ASSERT_GE(expected.size(), 4u);
  for (const uint64_t seed : {1, 2}) {
    const std::string out = small.folder() + "/killed" + std::to_string(seed);
    TrainWithKills(job, out, seed, 4, 20);
    EXPECT_EQ(FolderContent(out + "/model"), expected) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Recovery, KilledSerialRun,
    testing::Values(SerialCase{"Files", R"(dataset { class_name: "QueueDataset" })"},
                    SerialCase{"Memory", R"(dataset { class_name: "InMemoryDataset" local_shuffle: true })"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

class KilledHogwildRun : public testing::TestWithParam<SerialCase> {};

TEST_P(KilledHogwildRun, TrainsEveryLineExactlyOnce) {
  const SmallJob small(2000);
  const std::string job = small.CountingJob(
      std::string("thread_num: 2 checkpoint { every_steps: 100 } output { tensorboard: false } ") + GetParam().job);
  const std::string out = small.folder() + "/out";
  TrainWithKills(job, out, 3, 5, 12);
  std::vector<std::string> scores;
  for (const std::string& file : small.files()) {
    Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + file, "--batch_size=100"});
    std::string line;
    while (predictor.ReadLine(&line)) scores.push_back(line);
    ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  }
  ASSERT_EQ(static_cast<int>(scores.size()), small.lines());
  EXPECT_EQ(std::count(scores.begin(), scores.end(), "0.5"), small.lines());
}

INSTANTIATE_TEST_SUITE_P(
    Recovery, KilledHogwildRun,
    testing::Values(SerialCase{"Files", R"(dataset { class_name: "QueueDataset" })"},
                    SerialCase{"Memory", R"(dataset { class_name: "InMemoryDataset" local_shuffle: true })"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(Evaluated, OnceAfterTheLastBatchOfAPass) {
  const SmallJob small(320);  // ten batches
  const std::string job = small.DeepJob("epochs: 1 eval { filelist: \"" + small.files()[0] + "\" every_steps: 10 }");
  Process trainer("trainer", TrainerFlags(job, small.folder() + "/out", "never"));
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::string errors = trainer.errors();
  const size_t at = errors.find("evaluation after step 10:");
  ASSERT_NE(at, std::string::npos) << errors;
  EXPECT_EQ(errors.find("evaluation after step", at + 1), std::string::npos) << errors;
}

class Interrupted : public testing::TestWithParam<int> {};

TEST_P(Interrupted, LeavesACheckpointAndNoChild) {
  const SmallJob small(1000, 1);
  const std::string token = "millrace-" + std::to_string(getpid()) + "-" + std::to_string(GetParam());
  const std::string job = small.DeepJob("update_mode: SERIAL");
  const std::string out = small.folder() + "/out";
  std::vector<std::string> flags = TrainerFlags(job, out, "never");
  // The command hands the lines on again and again, then hangs for good.
  flags.push_back("--set=data_desc.pipe_command=\"for i in {1..80}; do cat " + small.files()[0] +
                  "; done; sleep 1000 # " + token + "\"");
  Process trainer("trainer", flags);
  std::string line;
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  trainer.Signal(GetParam());
  EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
  EXPECT_FALSE(AnyProcessMentions(token));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"interrupted\": true"));
  EXPECT_FALSE(std::filesystem::exists(out + "/model"));

  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(resumed.Wait(), 2) << "another pipe_command in the middle of an epoch";
  EXPECT_THAT(resumed.errors(), HasSubstr("pipe_command"));
}

TEST_P(Interrupted, DuringTheLastEvaluationTheNextRunEvaluatesAndEndsAlike) {
  const SmallJob small(1000);
  const std::string held_out = small.folder() + "/held_out";
  const std::string eval = " update_mode: SERIAL eval { filelist: \"" + held_out + "\" } output { tensorboard: false }";
  std::filesystem::copy_file(small.files()[0], held_out);
  const std::string job = small.DeepJob(eval);
  const std::string calm = small.folder() + "/calm";
  Process undisturbed("trainer", TrainerFlags(job, calm, "never"));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.errors();

  std::filesystem::remove(held_out);
  ASSERT_EQ(mkfifo(held_out.c_str(), 0600), 0);  // evaluation waits for a writer that never comes
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", TrainerFlags(job, out, "never"));
  while (trainer.errors().find("epoch 1:") == std::string::npos) std::this_thread::yield();
  trainer.Signal(GetParam());
  EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
  EXPECT_FALSE(std::filesystem::exists(out + "/model"));

  std::filesystem::remove(held_out);
  std::filesystem::copy_file(small.files()[0], held_out);
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr("evaluation after step"));
  EXPECT_EQ(FolderContent(out + "/model"), FolderContent(calm + "/model"));
}

TEST(ResumedRun, ThatHadStoppedEarlyTrainsNoMoreAndStillSaysItsQuality) {
  const SmallJob small(1000);
  const std::string job = small.DeepJob("update_mode: SERIAL epochs: 50 eval { filelist: \"" + small.files()[0] +
                                        "\" early_stopping { patience: 1 min_delta: 10 } }");
  const std::string out = small.folder() + "/out";
  Process first("trainer", TrainerFlags(job, out, "never"));
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  EXPECT_THAT(first.errors(), HasSubstr("stopped early"));
  const std::vector<std::string> model = FolderContent(out + "/model");
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr("stopped early: 0 examples"));
  EXPECT_THAT(resumed.errors(), HasSubstr("evaluation  auc"));
  EXPECT_EQ(FolderContent(out + "/model"), model);
}

TEST(TrainerTest, AModelLargerThanTheMachineIsSaidNotTried) {
  const SmallJob small(100);
  const std::string job = small.DeepJob("");
  const auto flags = [&job](const std::string& vocabulary) {
    const std::string table = "--set=model.table[t]={name: \"t\" dim: 4 vocabulary: " + vocabulary + "}";
    return std::vector<std::string>{"--trainer_desc=" + job, table};
  };
  Process large("trainer", flags("1000000000000"));
  EXPECT_EQ(large.Wait(), 2);
  EXPECT_THAT(large.errors(), HasSubstr("the largest is \"t"));
  EXPECT_THAT(large.errors(), HasSubstr("leave out the vocabulary"));
  Process absurd("trainer", flags("9223372036854775807"));
  EXPECT_EQ(absurd.Wait(), 2);
  EXPECT_THAT(absurd.errors(), HasSubstr("no machine holds its parameter \"t\""));
}

INSTANTIATE_TEST_SUITE_P(Recovery, Interrupted, testing::Values(SIGINT, SIGTERM));

std::vector<std::string> Checkpoints(const std::string& out) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(out + "/checkpoints")) {
    if (!entry.is_symlink()) names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointTest, DamagedOnesAreRefusedByNameAndTheNextOlderOneIsTaken) {
  const SmallJob small(1000);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("update_mode: SERIAL checkpoint { every_steps: 10 keep: 3 }");
  Process first("trainer", TrainerFlags(job, out, "never"));
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  const std::vector<std::string> model = FolderContent(out + "/model");
  const std::vector<std::string> names = Checkpoints(out);
  ASSERT_EQ(names.size(), 3u);
  std::filesystem::resize_file(names[2] + "/parameters", 100);
  std::filesystem::resize_file(names[1] + "/MANIFEST", 200);

  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(resumed.Wait(), 0);
  EXPECT_THAT(resumed.errors(), HasSubstr("checkpoint \"" + names[2] + "\" is refused"));
  EXPECT_THAT(resumed.errors(), HasSubstr("checkpoint \"" + names[1] + "\" is refused"));
  EXPECT_THAT(resumed.errors(), HasSubstr("going on from \"" + names[0] + "\""));
  EXPECT_EQ(FolderContent(out + "/model"), model);
}

TEST(CheckpointTest, WhenAllAreDamagedNothingIsTrained) {
  const SmallJob small(300);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("");
  ASSERT_EQ(Process("trainer", TrainerFlags(job, out, "never")).Wait(), 0);
  for (const std::string& name : Checkpoints(out)) std::filesystem::resize_file(name + "/tables/t", 10);
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(resumed.Wait(), 3);
  EXPECT_THAT(resumed.errors(), HasSubstr("no checkpoint is whole"));
}

TEST(CheckpointTest, AnotherModelSaysWhatDiffers) {
  const SmallJob small(300);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("");
  ASSERT_EQ(Process("trainer", TrainerFlags(job, out, "never")).Wait(), 0);
  std::vector<std::string> flags = TrainerFlags(job, out, "auto");
  flags.push_back("--set=model.layer[1].fc.units=[16, 9]");
  Process resumed("trainer", flags);
  EXPECT_EQ(resumed.Wait(), 2);
  EXPECT_THAT(resumed.errors(), HasSubstr("\"h.w_1\" was float32 [16, 8] and is now float32 [16, 9]"));
}

TEST(PredictorTest, LinesWithoutTheLabelGiveTheSameScores) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("");
  ASSERT_EQ(Process("trainer", TrainerFlags(job, out, "never")).Wait(), 0);
  const std::string file = small.files()[0];
  const std::string scores = small.folder() + "/scores";
  Process whole("predictor", {"--model_dir=" + out + "/model", "--input=" + file, "--output=" + scores});
  ASSERT_EQ(whole.Wait(), 0) << whole.errors();
  const std::string cut = "--pipe_command=sed 's/^1 [01] //'";
  Process bare("predictor", {"--model_dir=" + out + "/model", "--input=" + file, cut, "--without=label",
                             "--compare=" + scores, "--tolerance=1e-6"});
  EXPECT_EQ(bare.Wait(), 0) << bare.errors();
  Process needed("predictor", {"--model_dir=" + out + "/model", "--input=" + file, "--without=A"});
  EXPECT_EQ(needed.Wait(), 2);
  EXPECT_THAT(needed.errors(), HasSubstr("the model's score depends on slot \"A\""));
}

TEST(PredictorTest, LinesFromAPipeOnStandardInputAreAllScored) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  ASSERT_EQ(Process("trainer", TrainerFlags(small.DeepJob(""), out, "never")).Wait(), 0);
  const std::string piped = small.folder() + "/piped";
  const std::string command = "cat " + small.files()[0] + " | " + MILLRACE_BIN_DIR + "/predictor --model_dir=" + out +
                              "/model --output=" + piped;
  ASSERT_EQ(std::system(command.c_str()), 0);
  Process compared("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0], "--compare=" + piped,
                                 "--tolerance=1e-6"});
  EXPECT_EQ(compared.Wait(), 0) << compared.errors();
}

TEST(TrainerTest, AStrayWordIsNoOverride) {
  const SmallJob small(300, 1);
  std::vector<std::string> flags = TrainerFlags(small.DeepJob(""), small.folder() + "/out", "never");
  flags.push_back("epochs=2");
  Process trainer("trainer", flags);
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("each override needs a --set of its own"));
}

TEST(CheckpointTest, AFullDiskEndsTheRunAndLeavesWholeCheckpointsOnly) {
  const SmallJob small(2000);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("checkpoint { every_steps: 10 } output { tensorboard: false }");
  Process trainer("trainer", TrainerFlags(job, out, "never"), {.file_size_limit = 20000, .input = "/dev/null"});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("File too large"));
  EXPECT_FALSE(std::filesystem::exists(out + "/model"));
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(resumed.Wait(), 0) << resumed.errors();
}

}  // namespace
}  // namespace millrace
