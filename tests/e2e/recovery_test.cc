#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/file.h"
#include "core/rng.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "paths.h"

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

std::vector<std::string> WithoutTheTime(const std::string& printed) {
  std::vector<std::string> lines;
  std::istringstream text(printed);
  for (std::string line; std::getline(text, line);) lines.push_back(line.substr(line.find("], batch")));
  return lines;
}

TEST(ResumedRun, PrintsAtTheStepsOfAnUndisturbedOne) {
  const SmallJob small(1000, 1);
  const std::string job = small.DeepJob("update_mode: SERIAL epochs: 2 checkpoint { every_steps: 10 keep: 100 }");
  const std::string out = small.folder() + "/out";
  Process undisturbed("trainer", TrainerFlags(job, out, "never"));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.errors();
  const std::vector<std::string> all = WithoutTheTime(undisturbed.output());
  const std::string metrics = ReadFile(out + "/metrics.jsonl").value();
  ASSERT_EQ(all.size(), 20U);  // 32 batches an epoch
  Process resumed("trainer", TrainerFlags(job, out, out + "/checkpoints/step-000000000010"));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_EQ(WithoutTheTime(resumed.output()), std::vector<std::string>(all.begin() + 3, all.end()));
  EXPECT_EQ(ReadFile(out + "/metrics.jsonl").value(), metrics);
}

TEST(ResumedRun, PrintsTheWindowThatItStoodIn) {
  const SmallJob small(1000, 1);
  const std::string job = small.DeepJob("update_mode: SERIAL epochs: 2 checkpoint { every_steps: 10 keep: 100 }");
  const std::string out = small.folder() + "/out";
  const auto print = [&job, &out](const std::string& resume) {
    std::vector<std::string> flags = TrainerFlags(job, out, resume);
    flags.insert(flags.end(), {"--set", "fetch_config.fetch_var_names=['batch_auc', 'batch_gauc', 'gauc']", "--set",
                               "fetch_config.print_period=7"});
    Process trainer("trainer", flags);
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    return WithoutTheTime(trainer.output());
  };
  const std::vector<std::string> all = print("never");
  ASSERT_EQ(all.size(), 8U);  // 32 batches an epoch
  EXPECT_EQ(print(out + "/checkpoints/step-000000000010"), std::vector<std::string>(all.begin() + 1, all.end()));
}

TEST(ResumedRun, WritesThePointOfAnEpochWhoseLastBatchWasTrained) {
  const SmallJob small(1000, 1);
  const std::string job =
      small.DeepJob("update_mode: SERIAL epochs: 2 checkpoint { every_steps: 32 every_epochs: 3 keep: 100 }");
  const std::string out = small.folder() + "/out";
  std::vector<std::string> flags = TrainerFlags(job, out, "never");
  flags.insert(flags.end(), {"--set", "fetch_config.print_period=0", "--set", "fetch_config.fetch_var_names=['auc']"});
  ASSERT_EQ(Process("trainer", flags).Wait(), 0);  // 32 batches an epoch
  const std::string metrics = ReadFile(out + "/metrics.jsonl").value();
  ASSERT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 2);
  std::filesystem::resize_file(out + "/metrics.jsonl", 0);
  flags[2] = "--resume=" + out + "/checkpoints/step-000000000032";
  Process resumed("trainer", flags);
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_EQ(ReadFile(out + "/metrics.jsonl").value(), metrics);
}

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

TEST(KilledBinaryRun, EndsWithTheBytesOfAnUndisturbedOne) {
  const SmallJob small(2500);
  const std::string text =
      small.DeepJob("update_mode: SERIAL epochs: 2 checkpoint { every_steps: 10 } output { tensorboard: false }");
  Process inspect("inspect", {"convert", "--trainer_desc=" + text, "--output_dir=" + small.folder() + "/binary"});
  ASSERT_EQ(inspect.Wait(), 0) << inspect.errors();
  const std::string job = small.folder() + "/binary/job.prototxt";
  const std::string calm = small.folder() + "/calm";
  Process undisturbed("trainer", TrainerFlags(job, calm, "never"));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.errors();
  const std::string out = small.folder() + "/killed";
  TrainWithKills(job, out, 1, 4, 20);
  EXPECT_EQ(FolderContent(out + "/model"), FolderContent(calm + "/model"));
  // The text trains the same parameters.
  const std::string read = small.folder() + "/read";
  Process from_text("trainer", TrainerFlags(text, read, "never"));
  ASSERT_EQ(from_text.Wait(), 0) << from_text.errors();
  EXPECT_EQ(ReadFile(read + "/metrics.jsonl").value(), ReadFile(calm + "/metrics.jsonl").value());
}

class KilledHogwildRun : public testing::TestWithParam<SerialCase> {};

TEST_P(KilledHogwildRun, TrainsEveryLineExactlyOnce) {
  const SmallJob small(2000);
  const std::string job = small.CountingJob(
      std::string("thread_num: 2 checkpoint { every_steps: 100 } output { tensorboard: false } ") + GetParam().job);
  const std::string out = small.folder() + "/out";
  TrainWithKills(job, out, 3, 5, 12);
  const std::vector<std::string> scores = ScoresOf(out, small.files());
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

std::vector<std::string> Evaluations(const std::string& out) {
  std::vector<std::string> lines;
  std::ifstream file(out + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"eval_loss\"") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

TEST_P(Interrupted, DuringAnEvaluationWithinAnEpochTheNextRunRepeatsIt) {
  const SmallJob small(1000);
  const std::string held_out = small.folder() + "/held_out";
  const std::string started = small.folder() + "/started";
  const std::string gate = small.folder() + "/gate";
  // Told apart from the training's files by its first line; while there is a gate, the evaluation gets no end of it.
  std::ofstream(held_out) << "1 1 1 1 1 9999999 1 3 2 4 5\n" << ReadFile(small.files()[0]).value();
  const std::string pipe = "read -r l; printf '%s\\\\n' \\\"$l\\\"; cat; case \\\"$l\\\" in *9999999*) while [ -e " +
                           gate + " ]; do touch " + started + "; sleep 0.05; done;; esac";
  const std::string job = small.DeepJob("update_mode: SERIAL eval { filelist: \"" + held_out +
                                        "\" every_steps: 10 early_stopping { patience: 2 } } "
                                        "output { tensorboard: false }");
  const auto flags = [&](const std::string& out, const std::string& resume) {
    std::vector<std::string> all = TrainerFlags(job, out, resume);
    all.insert(all.end(), {"--set", "data_desc.pipe_command=\"" + pipe + "\""});
    return all;
  };
  const std::string calm = small.folder() + "/calm";
  Process undisturbed("trainer", flags(calm, "never"));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.errors();

  std::ofstream(gate) << "";
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", flags(out, "never"));
  while (!std::filesystem::exists(started)) std::this_thread::yield();
  trainer.Signal(GetParam());
  EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
  EXPECT_TRUE(Evaluations(out).empty());

  std::filesystem::remove(gate);
  Process resumed("trainer", flags(out, "auto"));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_EQ(Evaluations(out), Evaluations(calm));
  EXPECT_EQ(FolderContent(out + "/model"), FolderContent(calm + "/model"));
}

/// The object "metrics" of run.json.
std::string ReportedMetrics(const std::string& out) {
  const std::string report = ReadFile(out + "/run.json").value();
  const size_t begin = report.find("\"metrics\"");
  return report.substr(begin, report.find("\"eval\"") - begin);
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
  const std::string metrics = ReportedMetrics(out);
  EXPECT_THAT(metrics, HasSubstr("\"auc\""));
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr(" 0 examples in this run, "));
  EXPECT_EQ(ReportedMetrics(out), metrics);
  EXPECT_THAT(resumed.errors(), HasSubstr("evaluation  auc"));
  EXPECT_EQ(FolderContent(out + "/model"), model);
}

// every_steps evaluates the last batch's model within the epoch, and the run that is resumed the same model behind it.
TEST(ResumedRun, WritesAnEvaluationOfTheModelThatIsThereOnce) {
  const SmallJob small(320, 1);
  const std::string job =
      small.DeepJob("update_mode: SERIAL eval { filelist: \"" + small.files()[0] + "\" every_steps: 5 }");
  const std::string out = small.folder() + "/out";
  Process first("trainer", TrainerFlags(job, out, "never"));
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  const std::vector<std::string> evaluations = Evaluations(out);
  ASSERT_EQ(evaluations.size(), 2U);
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_EQ(Evaluations(out), evaluations);
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

INSTANTIATE_TEST_SUITE_P(Recovery, Interrupted, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGUSR1));

TEST(Hangup, ASecondOneDoesNotCutTheCheckpointAndNohupIgnoresIt) {
  const SmallJob small(1000, 1);
  const std::string out = small.folder() + "/out";
  std::vector<std::string> flags = TrainerFlags(small.DeepJob("update_mode: SERIAL"), out, "never");
  const std::string endless = "--set=data_desc.pipe_command=\"while cat " + small.files()[0] + "; do :; done\"";
  flags.push_back(endless);
  std::string line;
  Process trainer("trainer", flags);
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  for (int i = 0; i < 5; ++i) trainer.Signal(SIGHUP);
  EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"interrupted\": true"));

  Process::Options nohup;
  nohup.ignores_hangup = true;
  Process ignoring("trainer", flags, nohup);
  ASSERT_TRUE(ignoring.ReadLine(&line)) << ignoring.errors();
  ignoring.Signal(SIGHUP);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ignoring.ReadLine(&line)) << ignoring.errors();
  ignoring.Signal(SIGTERM);
  EXPECT_EQ(ignoring.Wait(), 130);
  constexpr char kHeard[] = "stopping after the current batch";
  EXPECT_EQ(ignoring.errors().find(kHeard), ignoring.errors().rfind(kHeard)) << "the hangup was heard";
}

std::vector<std::string> Checkpoints(const std::string& out) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(out + "/checkpoints")) {
    if (entry.is_directory() && !entry.is_symlink()) names.push_back(entry.path().string());
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

TEST(CheckpointTest, OfARunBeforeOneThatStartedAnewIsPassedOver) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("");
  ASSERT_EQ(Process("trainer", TrainerFlags(job, out, "never")).Wait(), 0);
  const std::vector<std::string> before = Checkpoints(out);
  ASSERT_FALSE(before.empty());

  std::vector<std::string> flags = TrainerFlags(job, out, "never");
  flags.push_back("--set=data_desc.pipe_command=\"while true; do cat " + small.files()[0] + "; done\"");
  Process killed("trainer", flags);
  std::string line;
  ASSERT_TRUE(killed.ReadLine(&line)) << killed.errors();
  killed.Signal(SIGKILL);
  killed.Wait();
  ASSERT_EQ(Checkpoints(out), before);

  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr("checkpoint \"" + before.back() +
                                          "\" is of an earlier run, before one that started anew; --resume=" +
                                          before.back() + " goes on from it"));
  EXPECT_THAT(resumed.errors(), HasSubstr("starting anew"));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"examples\": 300,"));
}

TEST(CheckpointTest, OfLaterStepsGiveWayToThoseOfARunThatWentOnFromAnEarlierOne) {
  const SmallJob small(10000, 1);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("update_mode: SERIAL checkpoint { every_steps: 100 keep: 3 }");
  ASSERT_EQ(Process("trainer", TrainerFlags(job, out, "never")).Wait(), 0);
  const std::vector<std::string> before = Checkpoints(out);
  ASSERT_EQ(before.size(), 3U);  // after 200, 300 and 313 steps
  std::filesystem::create_directory(out + "/checkpoints/step-by-step");

  std::vector<std::string> flags = TrainerFlags(job, out, before[0]);
  flags.push_back("--set=checkpoint.every_steps=1");
  Process resumed("trainer", flags);
  std::string line;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(resumed.ReadLine(&line)) << resumed.errors();  // after step 204
  resumed.Signal(SIGKILL);
  resumed.Wait();
  EXPECT_THAT(resumed.errors(), HasSubstr("checkpoints of later steps in \"" + out + "/checkpoints\" are left behind"));
  EXPECT_FALSE(std::filesystem::exists(before[2])) << "it would be gone on from, instead of the newest";
  EXPECT_TRUE(std::filesystem::exists(out + "/checkpoints/step-by-step")) << "no checkpoint of ours";
}

// The exit code of a run that goes on from the first checkpoint, in the middle of an epoch, and what it said.
std::pair<int, std::string> GoOn(const std::string& job, const std::string& out, const std::string& set) {
  std::vector<std::string> flags = TrainerFlags(job, out, Checkpoints(out).front());
  if (!set.empty()) flags.push_back("--set=" + set);
  Process resumed("trainer", flags);
  const int code = resumed.Wait();
  return {code, resumed.errors()};
}

TEST(CheckpointTest, LinesThatMeanSomethingElseNowAreRefusedByName) {
  const SmallJob small(1000);
  const std::string job = small.DeepJob("update_mode: SERIAL checkpoint { every_steps: 10 keep: 100 }");
  for (const auto& [set, said] : {
           std::pair("data_desc.empty_slot=ALLOW", "data_desc.empty_slot was ERROR and is now ALLOW"),
           std::pair("data_desc.zeros=DROP", "data_desc.zeros was KEEP and is now DROP"),
           std::pair("data_desc.trailing_values=IGNORE", "data_desc.trailing_values was REJECT and is now IGNORE"),
           std::pair("data_desc.non_finite=REJECT_NON_FINITE",
                     "data_desc.non_finite was ACCEPT and is now REJECT_NON_FINITE"),
           std::pair("data_desc.parse_ins_id=true", "data_desc.parse_ins_id was false and is now true"),
           std::pair("data_desc.multi_slot_desc.slots[uid].name=\"user\"",
                     "slot 3 was \"uid\" uint64 sparse and is now \"user\" uint64 sparse"),
       }) {
    const std::string out = small.folder() + "/out";
    ASSERT_EQ(Process("trainer", TrainerFlags(job, out, "never")).Wait(), 0);
    const auto [code, errors] = GoOn(job, out, set);
    EXPECT_EQ(code, 2) << set;
    EXPECT_THAT(errors, HasSubstr(said));
    EXPECT_THAT(errors, HasSubstr("it stands in the middle of epoch 1 of that input"));
  }
  const std::string out = small.folder() + "/out";
  const auto [code, errors] = GoOn(job, out, "data_desc.bad_lines={action: SKIP}");
  EXPECT_EQ(code, 0) << "lines keep their numbers: " << errors;
}

TEST(CheckpointTest, AFileOfOtherContentIsRefusedWithinAnEpochUnlessItIsAccepted) {
  const SmallJob small(1000);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("update_mode: SERIAL checkpoint { every_steps: 10 keep: 100 }");
  ASSERT_EQ(Process("trainer", TrainerFlags(job, out, "never")).Wait(), 0);
  const std::string file = small.files()[1];
  const std::string before = ReadFile(file).value();

  std::ofstream(file) << before;
  const auto [alike_code, alike] = GoOn(job, out, "");
  EXPECT_EQ(alike_code, 0) << alike;
  EXPECT_THAT(alike, HasSubstr("file \"" + file + "\" was written again since the checkpoint"));

  std::string other = before;
  other[before.size() - 2] = other[before.size() - 2] == '7' ? '8' : '7';
  std::ofstream(file) << other;
  const auto [changed_code, changed] = GoOn(job, out, "");
  EXPECT_EQ(changed_code, 2) << changed;
  EXPECT_THAT(changed, HasSubstr("file \"" + file +
                                 "\" has other content now, in as many bytes; it stands in the middle "
                                 "of epoch 1 of that input, so restore it, or start anew with --resume=never; if only "
                                 "lines have changed that were not trained yet, --set "
                                 "checkpoint.accept_changed_files=true goes on"));

  std::ofstream(file, std::ios::app) << "1 1 1 1 1 7 1 8 2 9 10\n";
  const auto [grown_code, grown] = GoOn(job, out, "");
  EXPECT_EQ(grown_code, 2) << grown;
  EXPECT_THAT(grown, HasSubstr("had " + std::to_string(before.size()) + " bytes and has now " +
                               std::to_string(before.size() + 23)));
  const auto [accepted_code, accepted] = GoOn(job, out, "checkpoint.accept_changed_files=true");
  EXPECT_EQ(accepted_code, 0) << accepted;
  EXPECT_THAT(accepted, HasSubstr("accepted, its lines keep their numbers"));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"examples\": 1001,"));
}

TEST(CheckpointTest, AnotherNumberOfRowsInMemoryIsRefused) {
  const SmallJob small(1000);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob(
      "update_mode: SERIAL checkpoint { every_steps: 10 keep: 100 } dataset { class_name: \"InMemoryDataset\" }");
  ASSERT_EQ(Process("trainer", TrainerFlags(job, out, "never")).Wait(), 0);
  std::ofstream(small.files()[0], std::ios::app) << "1 1 1 1 1 7 1 8 2 9 10\n";
  const auto [code, errors] = GoOn(job, out, "checkpoint.accept_changed_files=true");
  EXPECT_EQ(code, 2);
  EXPECT_THAT(errors, HasSubstr("the checkpoint was written with 1000 rows in memory, and there are now 1001"));
}

TEST(ResumedRun, ThatIsRefusedLeavesWhatTheEarlierOneWrote) {
  const SmallJob small(1000, 1);
  const std::string job = small.DeepJob(
      "update_mode: SERIAL checkpoint { every_steps: 10 keep: 100 } dataset { class_name: \"InMemoryDataset\" }");
  const std::string other = small.folder() + "/other";
  const std::string out = small.folder() + "/out";
  for (const std::string& folder : {other, out}) {
    ASSERT_EQ(Process("trainer", TrainerFlags(job, folder, "never")).Wait(), 0);
  }
  const std::string metrics = ReadFile(out + "/metrics.jsonl").value();
  const std::string whole = ReadFile(small.files()[0]).value();
  std::ofstream(small.files()[0], std::ios::app) << "1 1 1 1 1 7 1 8 2 9 10\n";
  std::vector<std::string> flags = TrainerFlags(job, out, other + "/checkpoints/step-000000000010");
  flags.push_back("--set=checkpoint.accept_changed_files=true");
  Process refused("trainer", flags);
  EXPECT_EQ(refused.Wait(), 2) << refused.errors();
  EXPECT_EQ(ReadFile(out + "/metrics.jsonl").value(), metrics);

  std::ofstream(small.files()[0]) << whole;
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr("going on from"));
}

TEST(StandardOutput, ThatTakesNothingIsAFailure) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob("");
  const std::string bin = BinDir();
  for (const std::string& command :
       {bin + "/trainer --trainer_desc=" + job + " --print_config",
        bin + "/trainer --trainer_desc=" + job + " --print_ops=fused",
        bin + "/trainer --trainer_desc=" + job + " --validate_only", bin + "/inspect head --trainer_desc=" + job,
        bin + "/clickgen --output_dir=- --rows=1000"}) {
    const std::string errors = small.folder() + "/errors";
    const int status = std::system((command + " > /dev/full 2> " + errors).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 3) << command;
    EXPECT_THAT(ReadFile(errors).value(), HasSubstr("No space left on device")) << command;
    const int closed = std::system((command + " >&- 2> " + errors).c_str());
    EXPECT_EQ(WEXITSTATUS(closed), 3) << command;
    EXPECT_THAT(ReadFile(errors).value(), HasSubstr("standard output is closed")) << command;
  }
  for (const char* program : {"trainer", "predictor", "inspect", "clickgen"}) {
    for (const char* flag : {" --version", " --help"}) {
      const std::string errors = small.folder() + "/errors";
      EXPECT_EQ(WEXITSTATUS(std::system((bin + "/" + program + flag + " > /dev/full 2> " + errors).c_str())), 3)
          << program << flag;
      EXPECT_EQ(ReadFile(errors).value(), std::string(program) +
                                              ": input/output error: cannot write to standard output: No space left on "
                                              "device\n");
    }
  }
  // A training is done by then; one that prints nothing lacks nothing.
  const std::string errors = small.folder() + "/errors";
  const std::string training =
      bin + "/trainer --trainer_desc=" + job + " --output_dir=" + small.folder() + "/out 2> " + errors + " >&- ";
  const int printed = std::system((training + "--set=fetch_config.print_period=1").c_str());
  EXPECT_EQ(WEXITSTATUS(printed), 3);
  EXPECT_THAT(ReadFile(errors).value(), HasSubstr("what it printed is lost: standard output is closed"));
  EXPECT_TRUE(std::filesystem::exists(small.folder() + "/out/model"));
  EXPECT_EQ(std::system((training + "--set=fetch_config.print_period=0").c_str()), 0) << ReadFile(errors).value();
  const std::string command = bin + "/clickgen --output_dir=- --rows=100000 2> " + small.folder() +
                              "/errors | head -1 > /dev/null; exit ${PIPESTATUS[0]}";
  EXPECT_EQ(WEXITSTATUS(std::system(("bash -c '" + command + "'").c_str())), 128 + SIGPIPE);
  EXPECT_EQ(ReadFile(small.folder() + "/errors").value(), "");
}

TEST(TrainerTest, APrintPeriodOfZeroPrintsNothing) {
  const SmallJob small(100, 1);
  std::vector<std::string> flags = TrainerFlags(small.DeepJob(""), small.folder() + "/out", "never");
  flags.push_back("--set=fetch_config.print_period=0");
  Process trainer("trainer", flags);
  std::string line;
  EXPECT_FALSE(trainer.ReadLine(&line)) << line;
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
}

TEST(TrainerTest, AnIdOutsideItsTableEndsAJobWhoseCommandGoesOn) {
  const SmallJob small(100, 1);
  std::vector<std::string> flags = TrainerFlags(small.DeepJob(""), small.folder() + "/out", "never");
  flags.push_back("--set=model.table[t]={name: \"t\" dim: 4 vocabulary: 5}");
  flags.push_back("--set=data_desc.pipe_command=\"while cat " + small.files()[0] + "; do true; done\"");
  Process trainer("trainer", flags);
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(),
              testing::ContainsRegex(
                  "slot \"A\", .*part-0:[0-9]+ .a line of pipe_command.s output.: the id is outside parameter \"t\", "
                  "whose ids are 0..4"));
}

TEST(TrainerTest, AResumeThatIsNeitherAutoNorAFolderIsTold) {
  const SmallJob small(100, 1);
  Process trainer("trainer", TrainerFlags(small.DeepJob(""), small.folder() + "/out", "yes"));
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(),
              HasSubstr("--resume is auto, never or the folder of a checkpoint, and there is no folder \"yes\""));
  Process folder("trainer", TrainerFlags(small.DeepJob(""), small.folder() + "/out", small.folder()));
  EXPECT_EQ(folder.Wait(), 2);
  EXPECT_THAT(folder.errors(), HasSubstr("\"" + small.folder() + "\" is no checkpoint: it has no MANIFEST"));
  std::ofstream(small.folder() + "/MODEL") << "of a model's folder";
  Process model("trainer", TrainerFlags(small.DeepJob(""), small.folder() + "/out", small.folder()));
  EXPECT_EQ(model.Wait(), 2);
  EXPECT_THAT(model.errors(), HasSubstr("\"" + small.folder() + "\" is a saved model, and no checkpoint"));
}

TEST(TrainerTest, WhatNeedsAnOutputFolderIsNotLeftOutInSilence) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob("checkpoint { every_steps: 10 }\noutput { trace: true }");
  Process trainer("trainer", {"--trainer_desc=" + job});
  EXPECT_EQ(trainer.Wait(), 2);
  for (const char* field : {"checkpoint", "trace"}) {
    EXPECT_THAT(trainer.errors(), HasSubstr(std::string(": error: ") + field +
                                            " is written to the output folder, and there is none: give "
                                            "--output_dir=DIR or output { dir: \"...\" }"));
  }
  EXPECT_EQ(Process("trainer", {"--trainer_desc=" + job, "--print_ops=fused"}).Wait(), 0);
}

TEST(TrainerTest, AnExportOfTheBestModelNeedsTheFolderThatKeepsIt) {
  const SmallJob small(100, 1);
  const std::string job =
      small.DeepJob("eval { filelist: \"" + small.folder() + "/part-0\" early_stopping { metric: \"loss\" } }");
  Process trainer("trainer", {"--trainer_desc=" + job, "--set=output.export+={ format: PADDLE dir: \"" +
                                                           small.folder() + "/paddle\" vocabulary: 100000 }"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(),
              HasSubstr("output.export is to hold the best model, which is kept as a checkpoint until the end: "
                        "give --output_dir, or leave out eval.early_stopping and checkpoint.keep_best"));
}

TEST(TrainerTest, MistakesThatOnlyTheCompilerSeesHaveTheirPlaces) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob("");
  Process wide("trainer", {"--trainer_desc=" + job, "--set=model.loss.in=\"h\"", "--set=model.loss.label=\"uid\""});
  EXPECT_EQ(wide.Wait(), 2);
  EXPECT_THAT(wide.errors(), HasSubstr("--set #2:1:18: error: slot \"uid\" must have one value"));
  Process fetch("trainer", {"--trainer_desc=" + job, "--set=fetch_config.fetch_var_names=[\"loss\", \"lozz\"]"});
  EXPECT_EQ(fetch.Wait(), 2);
  EXPECT_THAT(fetch.errors(), HasSubstr("--set #1:1:39: error: there is no metric or variable \"lozz\""));
}

TEST(TrainerTest, MistakesOfTheTextAndOfTheCompilerAreInOneReport) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob(
      "thread_num: 0 epoch: 2 check_nan_var_names: [\"loss\", \"losz\"] dump_fields: \"ee\" dump_param: \"t\"\n"
      "dump_fields_path: \"dump\" hogwild_param { stat_var_names: \"y\" }\n"
      "output { export { format: PADDLE } }\n");
  const std::vector<std::string> deeper = {
      "error: there is no metric or variable \"auk\"; did you mean \"auc\"?",
      "error: there is no variable \"losz\"; did you mean \"loss\"?",
      "error: there is no variable \"ee\"; did you mean \"e\"?",
      "error: \"t\" is a table of rows by id, no tensor; a checkpoint or a model holds it",
      "error: there is no persistable tensor \"y\"",
      " grows, but other runtimes hold tables as [vocabulary, dim]"};
  const std::string fetch = "--set=fetch_config.fetch_var_names=[\"auk\"]";
  Process trainer("trainer", {"--trainer_desc=" + job, fetch});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("error: thread_num must be at least 1, not 0"));
  EXPECT_THAT(trainer.errors(), HasSubstr("error: TrainerDesc has no field \"epoch\"; did you mean \"epochs\"?"));
  for (const std::string& mistake : deeper) EXPECT_THAT(trainer.errors(), HasSubstr(mistake));

  Process names("trainer", {"--trainer_desc=" + small.DeepJob("check_nan_var_names: \"losz\""), fetch});
  EXPECT_EQ(names.Wait(), 2);
  for (size_t i = 0; i < 2; ++i) EXPECT_THAT(names.errors(), HasSubstr(deeper[i]));
  EXPECT_THAT(names.errors(), HasSubstr("2 errors"));
}

TEST(TrainerTest, WhatHangsOnABrokenModelIsNotBlamed) {
  const SmallJob small(100, 1);
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("thread_num: 0"), "--set=model.layer[h].fc.in=\"ee\"",
                              "--set=fetch_config.fetch_var_names=[\"auk\"]"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("no layer or slot \"ee\""));
  EXPECT_THAT(trainer.errors(), HasSubstr("2 errors"));
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

TEST(PredictorTest, ANumberOfRowsBelowZeroIsRefused) {
  Process predictor("predictor", {"--model_dir=nowhere", "--batch_size=-1"});
  EXPECT_EQ(predictor.Wait(), 2);
  EXPECT_THAT(predictor.errors(), HasSubstr("--batch_size is a number of rows, or 0 for that of training, not -1"));
}

TEST(PredictorTest, LinesFromAPipeOnStandardInputAreAllScored) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  ASSERT_EQ(Process("trainer", TrainerFlags(small.DeepJob(""), out, "never")).Wait(), 0);
  const std::string piped = small.folder() + "/piped";
  const std::string command =
      "cat " + small.files()[0] + " | " + BinDir() + "/predictor --model_dir=" + out + "/model --output=" + piped;
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
  EXPECT_THAT(trainer.errors(), HasSubstr("the checkpoint of step 10 could not be written; there is none from before"));
  for (const auto& entry : std::filesystem::directory_iterator(out + "/checkpoints")) {
    EXPECT_EQ(entry.path().filename(), "RUN");  // nothing that fills the disk further
  }
  EXPECT_FALSE(std::filesystem::exists(out + "/model"));
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(resumed.Wait(), 0) << resumed.errors();
}

TEST(CheckpointTest, AFullDiskAtTheModelSaysThatTheCheckpointHoldsTheRunAndTheNextRunWritesIt) {
  const SmallJob small(40, 1);
  const std::string out = small.folder() + "/out";
  const std::string job = small.CountingJob("output { tensorboard: false }");
  // A program that takes more room than all that a checkpoint has.
  std::string text = ReadFile(job).value();
  const std::string loss = "loss { kind: SQUARED_ERROR in: \"e\"";
  const size_t at = text.find(loss);
  ASSERT_NE(at, std::string::npos);
  std::string layers;
  std::string last = "e";
  for (int i = 0; i < 200; ++i) {
    const std::string name = "x" + std::to_string(i);
    layers += "layer { name: \"" + name + "\" reduce_sum { in: \"" + last + "\" } }\n";
    last = name;
  }
  text.replace(at, loss.size(), layers + "loss { kind: SQUARED_ERROR in: \"" + last + "\"");
  std::ofstream(job) << text;
  Process trainer("trainer", TrainerFlags(job, out, "never"), {.file_size_limit = 20000, .input = "/dev/null"});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("File too large"));
  EXPECT_THAT(trainer.errors(), HasSubstr("the training is done, and the checkpoint of step 40 holds it"));
  EXPECT_FALSE(std::filesystem::exists(out + "/model"));
  Process resumed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr(" 0 examples in this run, "));
  EXPECT_TRUE(std::filesystem::exists(out + "/model/MODEL"));
}

// A line that does not parse, days behind the start: what was trained before it is not lost.
TEST(FailedRun, FromWhichAFileIsRemovedIsToldToBringItBack) {
  const SmallJob small(1500, 3);
  const std::string gone = small.files()[2];
  const std::string kept = small.folder() + "/kept";
  const std::string moved = small.folder() + "/moved";
  // The last file is gone before the first one is read to its end; the second is open by then.
  std::vector<std::string> flags =
      TrainerFlags(small.DeepJob("update_mode: SERIAL output { tensorboard: false }"), small.folder() + "/out", "auto");
  flags.insert(flags.end(), {"--set", "data_desc.pipe_command=cat; if mkdir " + moved + " 2>/dev/null; then mv " +
                                          gone + " " + kept + "; : > " + moved + "/done; fi; until [ -e " + moved +
                                          "/done ]; do sleep 0.02; done"});
  Process failed("trainer", flags);
  EXPECT_EQ(failed.Wait(), 3) << failed.errors();
  EXPECT_THAT(failed.errors(), testing::AllOf(HasSubstr("no such file"), HasSubstr("what was trained before is kept"),
                                              HasSubstr(" once the file is there again, as it was"),
                                              testing::Not(HasSubstr("accept_changed_files"))));
  std::filesystem::rename(kept, gone);
  Process resumed("trainer", flags);
  EXPECT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr("going on from"));
}

TEST(FailedRun, GoesOnFromTheBadLineOnceItIsMended) {
  const SmallJob small(1000, 1);
  const std::string file = small.files()[0];
  const std::string whole = ReadFile(file).value();
  size_t at = 0;
  for (int line = 0; line < 900; ++line) at = whole.find('\n', at) + 1;
  const std::string flag = small.folder() + "/flag";
  const std::string job = small.DeepJob("update_mode: SERIAL epochs: 2 output { tensorboard: false }");
  const std::string calm = small.folder() + "/calm";
  const auto flags = [&](const std::string& folder) {
    std::vector<std::string> all = TrainerFlags(job, folder, "auto");
    all.insert(all.end(), {"--set", "checkpoint.accept_changed_files=true", "--set",
                           "data_desc.pipe_command=while read -r line; do case $line in x) until [ -e " + flag +
                               " ]; do sleep 0.02; done;; esac; echo \"$line\"; done"});
    return all;
  };
  Process undisturbed("trainer", flags(calm));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.errors();
  std::ofstream(file) << whole.substr(0, at) << "x\n" << whole.substr(at);

  const std::string out = small.folder() + "/out";
  Process failed("trainer", flags(out));
  std::string line;
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(failed.ReadLine(&line)) << failed.errors();  // every third batch
  std::ofstream(flag) << "go on";
  EXPECT_EQ(failed.Wait(), 3);
  EXPECT_THAT(failed.errors(), HasSubstr(file + ":901:1: slot \"label\""));
  EXPECT_THAT(failed.errors(), HasSubstr("\nwhat was trained before is kept: --resume=auto goes on from step 2"));
  EXPECT_THAT(failed.errors(), HasSubstr("with --set checkpoint.accept_changed_files=true"));

  std::ofstream(file) << whole;
  Process mended("trainer", flags(out));
  EXPECT_EQ(mended.Wait(), 0) << mended.errors();
  EXPECT_THAT(mended.errors(), HasSubstr("going on from"));
  EXPECT_EQ(FolderContent(out + "/model"), FolderContent(calm + "/model"));
}

TEST(FailedRun, KeepsWhatWasTrainedBeforeABatchThatChangedNothing) {
  const SmallJob small(1000, 1);
  const std::string file = small.files()[0];
  const std::string job = small.DeepJob("update_mode: SERIAL output { tensorboard: false }");
  const std::string calm = small.folder() + "/calm";
  Process undisturbed("trainer", TrainerFlags(job, calm, "never"));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.errors();

  const std::string whole = ReadFile(file).value();
  size_t at = 0;
  for (int i = 1; i < 901; ++i) at = whole.find('\n', at) + 1;
  // A label that the loss has no meaning for is found by the operator of the loss.
  std::ofstream(file) << whole.substr(0, at) << "1 2" << whole.substr(at + 3);
  const std::string out = small.folder() + "/out";
  Process failed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(failed.Wait(), 3);
  EXPECT_THAT(failed.errors(), HasSubstr(file + ":901 is 2"));
  EXPECT_THAT(failed.errors(), HasSubstr("what was trained before is kept: --resume=auto goes on from step 28"));

  std::ofstream(file) << whole;
  std::vector<std::string> flags = TrainerFlags(job, out, "auto");
  flags.emplace_back("--set=checkpoint.accept_changed_files=true");
  Process mended("trainer", flags);
  EXPECT_EQ(mended.Wait(), 0) << mended.errors();
  EXPECT_THAT(mended.errors(), HasSubstr("going on from"));
  EXPECT_EQ(FolderContent(out + "/model"), FolderContent(calm + "/model"));
}

TEST(FailedRun, KeepsWhatWasTrainedWhenItsEvaluationFails) {
  const SmallJob small(1000, 1);
  const std::string held_out = small.folder() + "/held_out";
  const std::string job =
      small.DeepJob("update_mode: SERIAL output { tensorboard: false } eval { filelist: \"" + held_out + "\" }");
  std::filesystem::copy(small.files()[0], held_out);
  const std::string calm = small.folder() + "/calm";
  Process undisturbed("trainer", TrainerFlags(job, calm, "never"));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.errors();

  std::ofstream(held_out, std::ios::app) << "x\n";
  const std::string out = small.folder() + "/out";
  Process failed("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(failed.Wait(), 3);
  EXPECT_THAT(failed.errors(), HasSubstr("what was trained before is kept: --resume=auto goes on from step 32"));
  std::filesystem::copy(small.files()[0], held_out, std::filesystem::copy_options::overwrite_existing);
  Process mended("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(mended.Wait(), 0) << mended.errors();
  EXPECT_THAT(mended.errors(), HasSubstr("step 32, 1000 examples"));
  EXPECT_EQ(FolderContent(out + "/model"), FolderContent(calm + "/model"));
  // The number of every evaluation stands in it.
  EXPECT_EQ(ReadFile(out + "/metrics.jsonl").value(), ReadFile(calm + "/metrics.jsonl").value());
}

// The second one would remove the checkpoint that the first one is writing.
TEST(TrainerTest, TwoRunsDoNotWriteIntoOneFolder) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("");
  std::filesystem::create_directories(out);
  const int first = open(out.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(first, LOCK_EX), 0);
  Process second("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(second.Wait(), 2);
  EXPECT_THAT(second.errors(), HasSubstr("another run is writing to the output folder \"" + out + "\""));
  close(first);
  Process alone("trainer", TrainerFlags(job, out, "auto"));
  EXPECT_EQ(alone.Wait(), 0) << alone.errors();
}

}  // namespace
}  // namespace millrace
