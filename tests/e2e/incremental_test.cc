// Incremental jobs: days one after another, a model of each, a command run on it, and going on with more days.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

class IncrementalJob : public testing::TestWithParam<std::string> {
 protected:
  /// The job over the first `days` parts of the log.
  std::string Job(int days, const std::string& more = "") {
    std::string passes;
    for (int day = 0; day < days; ++day) {
      passes += " pass { name: \"d" + std::to_string(day) + "\" filelist: \"" +
                small_.files()[static_cast<size_t>(day)] + "\" }";
    }
    return small_.DeepJob("update_mode: SERIAL output { tensorboard: false } dataset { class_name: \"" + GetParam() +
                          "\" }\nincremental {" + passes + " " + more + " }\n");
  }
  std::string Out(const std::string& name) const { return small_.folder() + "/" + name; }
  static std::vector<std::string> Flags(const std::string& job, const std::string& out, const std::string& resume) {
    return {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=" + resume};
  }

  SmallJob small_{900};
};

TEST_P(IncrementalJob, TrainsDayByDayAsOneListAndRunsTheCommandOnEveryModel) {
  const std::string log = Out("log");
  Process trainer("trainer",
                  Flags(Job(3, "save_command: \"test -f $1/MODEL && echo $2 >> " + log + "\""), Out("days"), "never"));
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_EQ(ReadFile(log).value(), "d0\nd1\nd2\n");
  EXPECT_EQ(FolderContent(Out("days") + "/models/d2"), FolderContent(Out("days") + "/model"));
  EXPECT_NE(FolderContent(Out("days") + "/models/d0"), FolderContent(Out("days") + "/models/d1"));
}

// It used to count as trained, so that its log was never read when it came.
TEST_P(IncrementalJob, ADayWhoseLogHasNotComeEndsTheRunWhichGoesOnThere) {
  Process calm("trainer", Flags(Job(3), Out("calm"), "never"));
  ASSERT_EQ(calm.Wait(), 0) << calm.errors();
  const std::string late = small_.files()[1];
  const std::string log = ReadFile(late).value();
  std::ofstream(late) << "";
  const std::string job = Job(3, "save_command: \"echo $2 >> " + Out("log") + "\"");
  Process early("trainer", Flags(job, Out("days"), "never"));
  EXPECT_EQ(early.Wait(), 3);
  EXPECT_THAT(early.errors(), HasSubstr("pass \"d1\": nothing to train on: no row came out of " + late));
  EXPECT_THAT(early.errors(), HasSubstr("start again when its log is there, or take the pass out of the job"));
  EXPECT_EQ(ReadFile(Out("log")).value(), "d0\n");
  std::ofstream(late) << log;
  Process again("trainer", Flags(job, Out("days"), "auto"));
  ASSERT_EQ(again.Wait(), 0) << again.errors();
  EXPECT_EQ(ReadFile(Out("log")).value(), "d0\nd1\nd2\n");
  EXPECT_EQ(FolderContent(Out("days") + "/model"), FolderContent(Out("calm") + "/model"));
}

TEST_P(IncrementalJob, AFileOfTwoDaysIsTold) {
  std::filesystem::create_symlink(small_.files()[0], small_.folder() + "/link");
  for (const std::string& name : {small_.files()[0], small_.folder() + "/link"}) {
    Process twice("trainer", {"--trainer_desc=" + Job(2), "--validate_only",
                              "--set=incremental.pass[1].filelist=\"" + name + "\""});
    EXPECT_EQ(twice.Wait(), 0) << twice.errors();
    EXPECT_THAT(twice.errors(), HasSubstr(name + "\" is a file of pass \"d0\", too: its rows are trained in both"));
  }
}

TEST_P(IncrementalJob, SaveIntervalLeavesOutModelsButTheLast) {
  Process trainer("trainer", Flags(Job(3, "save_interval: 2"), Out("days"), "never"));
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_FALSE(std::filesystem::exists(Out("days") + "/models/d0"));
  EXPECT_TRUE(std::filesystem::exists(Out("days") + "/models/d1/MODEL"));
  EXPECT_TRUE(std::filesystem::exists(Out("days") + "/models/d2/MODEL"));
}

TEST_P(IncrementalJob, MoreDaysGoOnFromTheLatestModel) {
  Process all("trainer", Flags(Job(3), Out("all"), "never"));
  ASSERT_EQ(all.Wait(), 0) << all.errors();
  Process first("trainer", Flags(Job(2), Out("days"), "never"));
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  Process more("trainer", Flags(Job(3), Out("days"), "auto"));
  ASSERT_EQ(more.Wait(), 0) << more.errors();
  EXPECT_THAT(more.errors(), HasSubstr("epoch 2, step"));
  EXPECT_EQ(FolderContent(Out("days") + "/model"), FolderContent(Out("all") + "/model"));
}

// Logs are kept for some days; the job of the day after that used to end for want of the first one's.
TEST_P(IncrementalJob, LogsOfTrainedDaysMayBeGone) {
  Process all("trainer", Flags(Job(3), Out("all"), "never"));
  ASSERT_EQ(all.Wait(), 0) << all.errors();
  Process first("trainer", Flags(Job(2), Out("days"), "never"));
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  std::filesystem::remove(small_.files()[0]);
  std::filesystem::remove(small_.files()[1]);
  for (const char* const looks : {"--validate_only", "--print_ops=fused"}) {
    std::vector<std::string> flags = Flags(Job(3), Out("days"), "auto");
    flags.emplace_back(looks);
    Process looked("trainer", flags);
    EXPECT_EQ(looked.Wait(), 0) << looked.errors();
  }
  Process more("trainer", Flags(Job(3), Out("days"), "auto"));
  ASSERT_EQ(more.Wait(), 0) << more.errors();
  EXPECT_EQ(FolderContent(Out("days") + "/model"), FolderContent(Out("all") + "/model"));
  // A day that is to be trained needs its log.
  Process anew("trainer", Flags(Job(3), Out("days"), "never"));
  EXPECT_EQ(anew.Wait(), 3);
  EXPECT_THAT(anew.errors(), HasSubstr("part-0"));
  Process nothing_left("trainer", Flags(Job(3), Out("nowhere"), "auto"));
  EXPECT_EQ(nothing_left.Wait(), 3) << nothing_left.errors();
}

TEST_P(IncrementalJob, ADayThatIsToBeTrainedAgainNeedsItsLog) {
  Process first("trainer", Flags(Job(2), Out("days"), "never"));
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  // The newest checkpoint is damaged, and the one before stands behind the first day.
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(Out("days") + "/checkpoints")) {
    if (entry.path().filename().string().starts_with("step-")) newest = std::max(newest, entry.path().string());
  }
  std::filesystem::remove(small_.files()[1]);
  std::ofstream(newest + "/metrics", std::ios::app) << "x";
  Process again("trainer", Flags(Job(2), Out("days"), "auto"));
  EXPECT_EQ(again.Wait(), 3) << again.errors();
  EXPECT_THAT(again.errors(), HasSubstr("pass \"d1\": its files are not there, and it is to be trained"));
}

TEST_P(IncrementalJob, ARunKilledWithinADayGoesOnThere) {
  Process calm("trainer", Flags(Job(3, ""), Out("calm"), "never"));
  ASSERT_EQ(calm.Wait(), 0) << calm.errors();
  const std::string job = Job(3);
  for (const int lines : {2, 4, 6}) {
    std::vector<std::string> flags = Flags(job, Out("killed"), "auto");
    flags.push_back("--set");
    flags.push_back("checkpoint.every_steps=2");
    Process trainer("trainer", flags);
    std::string line;
    for (int i = 0; i < lines && trainer.ReadLine(&line); ++i) {
    }
    trainer.Signal(SIGKILL);
    trainer.Wait();
  }
  Process last("trainer", Flags(job, Out("killed"), "auto"));
  ASSERT_EQ(last.Wait(), 0) << last.errors();
  EXPECT_EQ(FolderContent(Out("killed") + "/model"), FolderContent(Out("calm") + "/model"));
}

TEST_P(IncrementalJob, OtherDaysThanThoseOfTheCheckpointAreRefused) {
  Process first("trainer", Flags(Job(2), Out("days"), "never"));
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  std::vector<std::string> flags = Flags(Job(3), Out("days"), "auto");
  flags.push_back("--set");
  flags.push_back("incremental.pass[1].name=other");
  Process renamed("trainer", flags);
  EXPECT_EQ(renamed.Wait(), 2);
  EXPECT_THAT(renamed.errors(), HasSubstr("pass 2 was \"d1\" and is now \"other\""));
  Process epochs("trainer", Flags(small_.DeepJob("update_mode: SERIAL"), Out("days"), "auto"));
  EXPECT_EQ(epochs.Wait(), 2);
  EXPECT_THAT(epochs.errors(), HasSubstr("it is of an incremental job, and this one has epochs"));
}

TEST_P(IncrementalJob, ADayThatDoesNotLoadLeavesWhatWasTrainedBefore) {
  std::vector<std::string> flags = Flags(Job(2), Out("days"), "auto");
  flags.insert(flags.end(), {"--set", "checkpoint.every_epochs=0", "--set", "checkpoint.every_steps=1000000"});
  const std::string day = small_.files()[1];
  const std::string whole = ReadFile(day).value();
  std::ofstream(day, std::ios::app) << "x\n";
  Process failed("trainer", flags);
  EXPECT_EQ(failed.Wait(), 3);
  EXPECT_THAT(failed.errors(), HasSubstr("what was trained before is kept: --resume=auto goes on from step "));
  std::ofstream(day) << whole;
  flags.push_back("--set=checkpoint.accept_changed_files=true");
  Process mended("trainer", flags);
  EXPECT_EQ(mended.Wait(), 0) << mended.errors();
  EXPECT_THAT(mended.errors(), HasSubstr("going on from"));
}

TEST_P(IncrementalJob, AFailedUploadIsToldAndTheRunGoesOn) {
  Process trainer("trainer", Flags(Job(3, "save_command: \"test $2 != d1 || { echo no space >&2; exit 7; }\""),
                                   Out("days"), "never"));
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("save_command of pass \"d1\": command exited with status 7"));
  EXPECT_THAT(trainer.errors(), HasSubstr("no space"));
  EXPECT_TRUE(std::filesystem::exists(Out("days") + "/models/d2/MODEL"));
  EXPECT_THAT(ReadFile(Out("days") + "/run.json").value(), HasSubstr("\"save_failures\""));
}

INSTANTIATE_TEST_SUITE_P(Classes, IncrementalJob, testing::Values("QueueDataset", "InMemoryDataset"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace millrace
