// Jobs of ranks as mpirun starts them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "paths.h"
#include "process_tree.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RanksCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNoRanks(); !reason.empty()) GTEST_SKIP() << reason;
  }
  std::vector<std::string> Flags(const std::string& job, const std::string& out) const {
    return {"--trainer_desc=" + job, "--output_dir=" + Folder(out), "--resume=auto"};
  }
  std::string Folder(const std::string& name) const { return small_.folder() + "/" + name; }
  /// Ranks see that their launcher is gone.
  void ExpectAllEnd(const std::string& out) const {
    for (int i = 0; i < 200 && AnyProcessMentions(Folder(out)); ++i) usleep(50'000);
    ASSERT_FALSE(AnyProcessMentions(Folder(out)));
  }
  /// Kills the launcher of two ranks, and that of the run that goes on. The next run keeps out of a folder that a rank
  /// still writes to.
  void KillTwoRuns(const std::string& job, const std::string& out) const {
    for (const int lines : {5, 9}) {
      Process ranks("trainer", Flags(job, out), {.ranks = 2});
      std::string line;
      for (int i = 0; i < lines && ranks.ReadLine(&line); ++i) {
      }
      ranks.Signal(SIGKILL);
      ranks.Wait();
      ASSERT_NO_FATAL_FAILURE(ExpectAllEnd(out));
    }
  }
  std::vector<std::string> Model(const std::string& run) const { return FolderContent(Folder(run) + "/model"); }
  std::string Job(const std::string& extra) const {
    return small_.DeepJob("dist { update: SYNC micro_batches: 4 } checkpoint { every_steps: 8 } " + extra);
  }

  const SmallJob small_{2000, 8};
};

TEST_F(RanksCommandTest, ASweepIsRunByOneProcess) {
  Process ranks("trainer", {"--trainer_desc=job", "--sweep=sweep", "--output_dir=out"}, {.ranks = 2});
  EXPECT_EQ(ranks.Wait(), 2);
  EXPECT_THAT(ranks.errors(), HasSubstr("each as one process: run it without mpirun"));
}

TEST_F(RanksCommandTest, RanksThatMpirunStartsTrainToTheBytesOfOneProcess) {
  const std::string job = Job("epochs: 2");
  Process alone("trainer", Flags(job, "alone"));
  ASSERT_EQ(alone.Wait(), 0) << alone.errors();
  Process ranks("trainer", Flags(job, "three"), {.ranks = 3});
  ASSERT_EQ(ranks.Wait(), 0) << ranks.errors();
  EXPECT_EQ(Model("three"), Model("alone"));
  EXPECT_THAT(
      ranks.errors(),
      HasSubstr("training on 3 ranks, in step: 4 batches of 32 examples an update (step numbers count batches)\n"));
  const std::string json = ReadFile(Folder("three") + "/run.json").value();
  EXPECT_THAT(json, HasSubstr("\"examples\": 4000"));
  EXPECT_THAT(json, HasSubstr("\"ranks\": 3"));
  EXPECT_THAT(json, Not(HasSubstr("\"wire_bytes\": 0")));
}

/// The numbers of the evaluation in run.json.
std::string EvaluationIn(const std::string& json) {
  const size_t at = json.find("\"eval\": {");
  return json.substr(at, json.find('}', at) - at);
}

TEST_F(RanksCommandTest, RanksMeasureTheModelTogetherAndComeToTheNumbersOfOneProcess) {
  std::string eval = "eval { ";
  for (const std::string& file : small_.files()) eval += "filelist: \"" + file + "\" ";
  const std::string job = Job("epochs: 2 " + eval + "}");
  Process alone("trainer", Flags(job, "alone"));
  ASSERT_EQ(alone.Wait(), 0) << alone.errors();
  const std::string expected = EvaluationIn(ReadFile(Folder("alone") + "/run.json").value());
  EXPECT_THAT(expected, HasSubstr("\"gauc\""));
  for (const int ranks : {2, 4}) {
    const std::string name = "ranks_" + std::to_string(ranks);
    Process some("trainer", Flags(job, name), {.ranks = ranks});
    ASSERT_EQ(some.Wait(), 0) << some.errors();
    EXPECT_EQ(EvaluationIn(ReadFile(Folder(name) + "/run.json").value()), expected);
  }
}

TEST_F(RanksCommandTest, ABadLineOfAnEvaluationIsToldOnceAndAStopEndsAllWithinIt) {
  const std::string held = Folder("held");
  const std::string mark = Folder("mark");
  std::ofstream(Folder("wait.sh")) << "while read -r line; do\n"
                                   << "  if [ \"$line\" = WAIT ]; then touch " << mark << "; exec sleep 3600; fi\n"
                                   << "  echo \"$line\"\n"
                                   << "done\n";
  const std::string job =
      small_.DeepJob("epochs: 1 eval { filelist: \"" + small_.files()[0] + "\" filelist: \"" + held + "\" }");
  std::vector<std::string> flags = Flags(job, "out");
  flags.insert(flags.end(), {"--set", "data_desc.pipe_command=\"bash " + Folder("wait.sh") + "\""});

  std::ofstream(held) << "1 x\n";
  Process bad("trainer", flags, {.ranks = 2});
  EXPECT_EQ(bad.Wait(), 3);
  const std::string errors = bad.errors();
  const size_t first = errors.find("held:1:3: slot \"label\"");
  ASSERT_NE(first, std::string::npos) << errors;
  EXPECT_EQ(errors.find("held:1:3", first + 1), std::string::npos) << errors;

  std::ofstream(held) << "WAIT\n";
  flags.insert(flags.end(), {"--set", "checkpoint.accept_changed_files=true"});
  Process stopped("trainer", flags, {.ranks = 2});
  for (int i = 0; i < 400 && !std::filesystem::exists(mark); ++i) usleep(50'000);
  ASSERT_TRUE(std::filesystem::exists(mark)) << stopped.errors();
  stopped.Signal(SIGUSR1);
  EXPECT_EQ(stopped.Wait(), 130) << stopped.errors();
}

TEST_F(RanksCommandTest, ATraceShowsAllRanks) {
  std::vector<std::string> flags = Flags(Job("epochs: 1"), "traced");
  flags.insert(flags.end(), {"--set", "output={ trace: true trace_first_batch: 8 trace_batches: 16 }"});
  Process ranks("trainer", flags, {.ranks = 2});
  ASSERT_EQ(ranks.Wait(), 0) << ranks.errors();
  const std::string trace = ReadFile(Folder("traced") + "/trace.json").value();
  for (const char* rank : {"rank 0 (", "rank 1 ("}) EXPECT_THAT(trace, HasSubstr(rank));
}

TEST_F(RanksCommandTest, RanksDumpTheirExamplesAndRankZeroWritesTheExport) {
  const std::string dumps = Folder("dumps");
  std::vector<std::string> flags = Flags(Job("epochs: 1 dump_fields: \"y\" dump_file_num: 1"), "out");
  flags.insert(flags.end(), {"--set", "dump_fields_path=\"" + dumps + "\"", "--set",
                             "output.export=[{ format: PADDLE vocabulary: 1000 }]"});
  Process ranks("trainer", flags, {.ranks = 2});
  ASSERT_EQ(ranks.Wait(), 0) << ranks.errors();
  EXPECT_TRUE(std::filesystem::exists(Folder("out") + "/paddle/model.pdmodel"));
  size_t lines = 0;
  for (const char* name : {"/part-000-00000", "/part-001-00000"}) {
    const std::string text = ReadFile(dumps + name).value();
    lines += static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  EXPECT_EQ(lines, 2000U);
}

TEST_F(RanksCommandTest, RanksInferEachLineOnceWithTheModelThatOneProcessTrained) {
  const std::string job = small_.DeepJob("epochs: 1 update_mode: SERIAL");
  Process alone("trainer", Flags(job, "out"));
  ASSERT_EQ(alone.Wait(), 0) << alone.errors();
  const auto scores_by = [&](int ranks) {
    const std::string dumps = Folder("scores_" + std::to_string(ranks));
    std::vector<std::string> flags = Flags(job, "out");
    flags.insert(flags.end(), {"--set=infer=true", "--set=dump_fields=[\"A\", \"y\"]", "--set=dump_file_num=1",
                               "--set=dump_fields_path=\"" + dumps + "\""});
    Process infer("trainer", flags, {.ranks = ranks});
    EXPECT_EQ(infer.Wait(), 0) << infer.errors();
    EXPECT_THAT(infer.errors(), HasSubstr("inferred: 2000 examples"));
    EXPECT_THAT(infer.errors(), HasSubstr(ranks > 0 ? "inferring on 2 ranks, each file by one of them\n" : ""));
    std::vector<std::string> lines;
    for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(dumps)) {
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  EXPECT_EQ(scores_by(2), scores_by(0));
}

TEST_F(RanksCommandTest, RanksShuffleTheRowsOfAllToTheBytesOfOneProcess) {
  const std::string job =
      Job("epochs: 2 dataset { class_name: \"InMemoryDataset\" global_shuffle: true fleet_send_batch_size: 100 }");
  Process alone("trainer", Flags(job, "alone"));
  ASSERT_EQ(alone.Wait(), 0) << alone.errors();
  for (const int ranks : {2, 4}) {
    const std::string name = "ranks_" + std::to_string(ranks);
    Process some("trainer", Flags(job, name), {.ranks = ranks});
    ASSERT_EQ(some.Wait(), 0) << some.errors();
    EXPECT_EQ(Model(name), Model("alone"));
    const std::string json = ReadFile(Folder(name) + "/run.json").value();
    EXPECT_THAT(json, HasSubstr("\"examples\": 4000"));
    EXPECT_THAT(json, HasSubstr("\"shuffle\""));
  }
}

TEST_F(RanksCommandTest, ARunWhoseLauncherWasKilledGoesOnWithAnotherNumberOfRanks) {
  const std::string job = Job("epochs: 4");
  Process alone("trainer", Flags(job, "alone"));
  ASSERT_EQ(alone.Wait(), 0) << alone.errors();
  ASSERT_NO_FATAL_FAILURE(KillTwoRuns(job, "killed"));
  Process last("trainer", Flags(job, "killed"), {.ranks = 4});
  ASSERT_EQ(last.Wait(), 0) << last.errors();
  EXPECT_EQ(Model("killed"), Model("alone"));
}

/// The process that is rank `rank` of a run into a folder; 0: none.
pid_t ProcessOfRank(int rank, const std::string& folder) {
  const std::string sign = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int pid = std::atoi(entry.path().filename().c_str());
    std::ifstream words(entry.path() / "cmdline");
    const std::string command{std::istreambuf_iterator<char>(words), {}};
    if (pid == 0 || command.find(folder) == std::string::npos) continue;
    std::ifstream settings(entry.path() / "environ");
    const std::string environment{std::istreambuf_iterator<char>(settings), {}};
    if (environment.find(sign + '\0') != std::string::npos) return pid;
  }
  return 0;
}

TEST_F(RanksCommandTest, RanksThatAreLeftGoOnWhenOneIsKilled) {
  const char* python = std::getenv("ULFM_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "ULFM_PYTHON is not set (scripts/peers ulfm)";
  const std::string open_mpi_5 = std::filesystem::path(python).parent_path().parent_path().string();
  const std::string job = Job("epochs: 4");
  Process alone("trainer", Flags(job, "alone"));
  ASSERT_EQ(alone.Wait(), 0) << alone.errors();
  Process ranks("trainer", Flags(job, "lost"), {.ranks = 4, .open_mpi_5 = open_mpi_5});
  std::string line;
  // One that follows, then the one that leads.
  int lines = 0;
  for (const int lost : {2, 0}) {
    for (int until = lines + 5; lines < until; ++lines) ASSERT_TRUE(ranks.ReadLine(&line)) << ranks.errors();
    const pid_t pid = ProcessOfRank(lost, Folder("lost"));
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
  }
  ranks.Wait();
  const std::string errors = ranks.errors();
  EXPECT_THAT(errors, HasSubstr("rank 2 ("));
  EXPECT_THAT(errors, HasSubstr(") is lost; 3 ranks go on\n"));
  EXPECT_THAT(errors, HasSubstr(") is lost; 2 ranks go on\n"));
  EXPECT_EQ(Model("lost"), Model("alone"));
  const std::string json = ReadFile(Folder("lost") + "/run.json").value();
  EXPECT_THAT(json, HasSubstr("\"examples\": 8000"));
  EXPECT_THAT(json, HasSubstr("\"restarts\": 2"));
  ExpectAllEnd("lost");
}

// As many ranks were left as serve, and the job ended as if that had been asked for.
TEST_F(RanksCommandTest, ARankTrainsWhereAsManyAreLeftAsServe) {
  const char* python = std::getenv("ULFM_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "ULFM_PYTHON is not set (scripts/peers ulfm)";
  const std::string open_mpi_5 = std::filesystem::path(python).parent_path().parent_path().string();
  Process alone("trainer", Flags(Job("epochs: 4"), "alone"));
  ASSERT_EQ(alone.Wait(), 0) << alone.errors();
  const std::string split = small_.DeepJob(
      "dist { update: SYNC micro_batches: 4 mode: SPLIT servers: 2 } checkpoint { every_steps: 8 } "
      "epochs: 4");
  for (const int lost : {0, 2}) {
    const std::string out = "lost" + std::to_string(lost);
    Process ranks("trainer", Flags(split, out), {.ranks = 3, .open_mpi_5 = open_mpi_5});
    std::string line;
    for (int lines = 0; lines < 5; ++lines) ASSERT_TRUE(ranks.ReadLine(&line)) << ranks.errors();
    const pid_t pid = ProcessOfRank(lost, Folder(out));
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
    ranks.Wait();
    EXPECT_THAT(ranks.errors(), HasSubstr(") is lost; 2 ranks go on\n"));
    EXPECT_THAT(ranks.errors(), HasSubstr("dist.servers: 1 from now on, so that one rank is left to train"));
    EXPECT_EQ(Model(out), Model("alone"));
    ExpectAllEnd(out);
  }
}

TEST_F(RanksCommandTest, RanksThatSaveWhatChangedOfALargeTableGoOnToTheBytesOfOneProcess) {
  const SmallJob small(300, 4);
  const std::string job = small.WideJob(
      "dist { update: SYNC micro_batches: 2 } checkpoint { every_steps: 1 keep: 100 } output { tensorboard: false } "
      "epochs: 2");
  std::string text = ReadFile(job).value();
  const std::string batch = "batch_size: 32";
  text.replace(text.find(batch), batch.size(), "batch_size: 8");
  std::ofstream(job) << text;
  Process alone("trainer", Flags(job, "alone"));
  ASSERT_EQ(alone.Wait(), 0) << alone.errors();
  ASSERT_NO_FATAL_FAILURE(KillTwoRuns(job, "killed"));
  Process last("trainer", Flags(job, "killed"), {.ranks = 2});
  ASSERT_EQ(last.Wait(), 0) << last.errors();
  EXPECT_TRUE(Model("killed") == Model("alone"));
  EXPECT_GE(CountCheckpointsWith(Folder("killed"), "changes/1/t").first, 5);
}

TEST_F(RanksCommandTest, AStopOfTheLauncherEndsAllRanksWithACheckpoint) {
  const std::string job = Job("epochs: 100000");
  Process ranks("trainer", Flags(job, "stopped"), {.ranks = 2});
  std::string line;
  ASSERT_TRUE(ranks.ReadLine(&line));
  ranks.Signal(SIGTERM);
  EXPECT_NE(ranks.Wait(), 0);
  ExpectAllEnd("stopped");
  const std::string errors = ranks.errors();
  EXPECT_THAT(errors, HasSubstr("go on       with --resume=auto"));
  const std::string stopping = "stopping after the current batch";
  ASSERT_NE(errors.find(stopping), std::string::npos) << errors;
  EXPECT_EQ(errors.find(stopping), errors.rfind(stopping)) << errors;
}

TEST_F(RanksCommandTest, CtrlCAtTheLauncherIsASecondEarlierThanItsSigtermAndTheNextRunGoesOn) {
  const std::string job = Job("epochs: 100000");
  for (const bool goes_on : {false, true}) {
    Process ranks("trainer", Flags(job, "stopped"), {.ranks = 2});
    std::string line;
    ASSERT_TRUE(ranks.ReadLine(&line));
    ranks.Signal(SIGINT);
    EXPECT_NE(ranks.Wait(), 0);
    ExpectAllEnd("stopped");
    const std::string errors = ranks.errors();
    EXPECT_THAT(errors, HasSubstr("mpirun leaves the ranks some 2 s for it and for a checkpoint"));
    EXPECT_THAT(errors, HasSubstr("go on       with --resume=auto"));
    EXPECT_EQ(errors.find("going on from \"" + Folder("stopped") + "/checkpoints/step-") != std::string::npos, goes_on);
  }
}

TEST_F(RanksCommandTest, TheEndOfARankIsNotCalledAStopThatTheUserAskedFor) {
  const std::string job = Job("epochs: 100000");
  Process ranks("trainer", Flags(job, "lost"), {.ranks = 2});
  std::string line;
  ASSERT_TRUE(ranks.ReadLine(&line));
  const pid_t pid = ProcessOfRank(1, Folder("lost"));
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  EXPECT_NE(ranks.Wait(), 0);
  EXPECT_THAT(ranks.errors(),
              HasSubstr("mpirun ends the run, as it was asked to, or as a rank failed or was lost, which is named: "
                        "stopping after the current batch; mpirun leaves"));
}

TEST_F(RanksCommandTest, RanksThatWereSuspendedWithTheirLauncherGoOn) {
  const std::string job = Job("epochs: 100000");
  Process ranks("trainer", Flags(job, "suspended"), {.ranks = 2});
  std::string line;
  ASSERT_TRUE(ranks.ReadLine(&line));
  const auto wait_for = [&ranks](const std::string& word) {
    for (int i = 0; i < 400 && ranks.errors().find(word) == std::string::npos; ++i) usleep(50'000);
    ASSERT_THAT(ranks.errors(), HasSubstr(word));
  };
  // mpirun passes both on.
  ranks.Signal(SIGTSTP);
  ASSERT_NO_FATAL_FAILURE(wait_for("Forwarding signal " + std::to_string(SIGTSTP)));
  WaitUntilIdle(ranks.pid());
  ranks.Signal(SIGCONT);
  ASSERT_NO_FATAL_FAILURE(wait_for("Forwarding signal " + std::to_string(SIGCONT)));
  const auto trained = [this] { return std::filesystem::file_size(Folder("suspended") + "/metrics.jsonl"); };
  const auto before = trained();
  for (int i = 0; i < 400 && trained() == before; ++i) usleep(50'000);
  EXPECT_GT(trained(), before);
  ranks.Signal(SIGUSR1);
  EXPECT_EQ(ranks.Wait(), 130) << ranks.errors();
  EXPECT_THAT(ranks.errors(), HasSubstr("stopping after the current batch; SIGINT or SIGTERM twice to stop at once"));
  EXPECT_THAT(ranks.errors(), HasSubstr("go on       with --resume=auto"));
}

// With Open MPI 5 a rank that was killed while MPI began left the others waiting for ever.
TEST_F(RanksCommandTest, ARankThatNeverBeginsMpiKeepsTheOthersForAWhileAlone) {
  std::vector<std::string> flags = Flags(Job("epochs: 1"), "never");
  for (const char* word : {":", "-n", "1", "sleep", "300"}) flags.emplace_back(word);
  setenv("MILLRACE_MPI_WAIT_SECONDS", "1", 1);
  Process ranks("trainer", flags, {.ranks = 1});
  unsetenv("MILLRACE_MPI_WAIT_SECONDS");
  EXPECT_EQ(ranks.Wait(), 3) << ranks.errors();
  EXPECT_THAT(
      ranks.errors(),
      HasSubstr(
          "trainer: unavailable: MPI has not begun within 1 s: a rank was lost while ranks started, begins later"));
}

TEST_F(RanksCommandTest, AMistakeIsToldOnce) {
  const std::string job = Job("epochs: 1");
  std::ofstream(small_.files()[2], std::ios::app) << "1 x\n";
  Process ranks("trainer", Flags(job, "bad"), {.ranks = 2});
  EXPECT_EQ(ranks.Wait(), 3);
  const std::string errors = ranks.errors();
  const size_t first = errors.find("part-2:251:3: slot \"label\"");
  ASSERT_NE(first, std::string::npos) << errors;
  EXPECT_EQ(errors.find("part-2:251", first + 1), std::string::npos) << errors;
}

TEST_F(RanksCommandTest, WhatIsWrongOfTheCommandLineOrTheJobIsToldOnce) {
  const std::string job = Job("epochs: 1");
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"--output_dri=x", "trainer: unknown flag --output_dri; did you mean --output_dir?\n"},
      {"thread_num=2", "trainer: \"thread_num=2\" is no flag; each override needs a --set of its own\n"},
      {"--set=epochs=0", "--set #1:1:8: error: epochs must be at least 1, not 0"}};
  for (const auto& [flag, message] : mistakes) {
    std::vector<std::string> flags = Flags(job, "never");
    flags.push_back(flag);
    Process ranks("trainer", flags, {.ranks = 3});
    EXPECT_EQ(ranks.Wait(), 2);
    const std::string errors = ranks.errors();
    const size_t first = errors.find(message);
    ASSERT_NE(first, std::string::npos) << errors;
    EXPECT_EQ(errors.find(message, first + 1), std::string::npos) << errors;
  }
}

/// The sum of a field's integers in JSON.
int64_t SumOf(const std::string& json, const std::string& field) {
  int64_t sum = 0;
  const std::string key = "\"" + field + "\": ";
  for (size_t at = json.find(key); at != std::string::npos; at = json.find(key, at + 1)) {
    sum += std::stoll(json.substr(at + key.size()));
  }
  return sum;
}

TEST_F(RanksCommandTest, RanksOfAJobThatDoesNotSayHowTrainAtTheirOwnPace) {
  const std::string job = small_.DeepJob("epochs: 3");
  for (const int ranks : {2, 4}) {
    const std::string out = "ranks_" + std::to_string(ranks);
    Process run("trainer", Flags(job, out), {.ranks = ranks});
    ASSERT_EQ(run.Wait(), 0) << run.errors();
    EXPECT_THAT(run.errors(), HasSubstr("each at its own pace (dist.update: ASYNC)\n"));
    const std::string json = ReadFile(Folder(out) + "/run.json").value();
    EXPECT_THAT(json, HasSubstr("\"examples\": 6000,"));
    EXPECT_THAT(json, HasSubstr("\"ranks\": " + std::to_string(ranks)));
    EXPECT_THAT(json, Not(HasSubstr("\"pushes\": 0")));
    const auto pushes = [&json](const std::string& name) {
      const size_t at = json.find("\"" + name + "\": ") + name.size() + 4;
      return json.substr(at, json.find_first_of(",}\n", at) - at);
    };
    EXPECT_EQ(pushes("pushes"), pushes("pushes_applied"));
    const size_t begin = json.find("\"per_rank\": [");
    const std::string per_rank = json.substr(begin, json.find(']', begin) - begin);
    EXPECT_EQ(SumOf(per_rank, "examples"), 6000);
    EXPECT_GT(SumOf(per_rank, "rows"), 0);
    EXPECT_THAT(run.errors(), AllOf(HasSubstr("  slowest     rank "), HasSubstr("  fullest     rank ")));
    EXPECT_THAT(run.errors(), Not(HasSubstr("had no file")));
  }
}

TEST_F(RanksCommandTest, RanksThatHaveNoFileAreToldWhateverElseTookTime) {
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    std::vector<std::string> flags = Flags(small_.DeepJob("epochs: 2"), dataset);
    flags.push_back("--set=filelist=\"" + small_.files()[0] + "\"");
    flags.push_back("--set=dataset.class_name=\"" + dataset + "\"");
    Process run("trainer", flags, {.ranks = 3});
    ASSERT_EQ(run.Wait(), 0) << run.errors();
    EXPECT_THAT(run.errors(), HasSubstr("2 of 3 ranks had no file: split the input into as many as there are ranks"));
  }
}

TEST_F(RanksCommandTest, RanksCountTheShowsAndClicksOfTheLog) {
  for (const char* dist : {"update: ASYNC", "update: ASYNC wire: BF16", "update: SYNC micro_batches: 4"}) {
    const std::string job = small_.CtrJob("epochs: 2 dist { " + std::string(dist) + " }\n");
    std::vector<std::string> flags = Flags(job, dist);
    flags.insert(flags.end(), {"--set", "model.table[0].key=ID"});
    Process ranks("trainer", flags, {.ranks = 2});
    ASSERT_EQ(ranks.Wait(), 0) << ranks.errors();
    EXPECT_EQ(CountsIn(Folder(dist) + "/model/tables/t"), small_.Counts(2)) << dist;
  }
}

TEST_F(RanksCommandTest, RanksAtTheirOwnPaceGoOnAfterAKillAndTrainEachLineOnce) {
  for (const std::string update : {"SSP staleness: 1", "GEO geo_steps: 5"}) {
    const std::string out = update.substr(0, 3);
    const std::string job = small_.DeepJob("dist { update: " + update + " } epochs: 40 checkpoint { every_steps: 20 }");
    ASSERT_NO_FATAL_FAILURE(KillTwoRuns(job, out));
    Process last("trainer", Flags(job, out), {.ranks = 3});
    ASSERT_EQ(last.Wait(), 0) << last.errors();
    EXPECT_THAT(ReadFile(Folder(out) + "/run.json").value(), HasSubstr("\"examples\": 80000,"));
  }
}

TEST_F(RanksCommandTest, AStopOfOneRankAtItsOwnPaceEndsAllWithACheckpoint) {
  Process ranks("trainer", Flags(small_.DeepJob("epochs: 100000 checkpoint { every_steps: 50 }"), "stopped"),
                {.ranks = 3});
  std::string line;
  ASSERT_TRUE(ranks.ReadLine(&line));
  ranks.Signal(SIGTERM);
  EXPECT_NE(ranks.Wait(), 0);
  ExpectAllEnd("stopped");
  EXPECT_THAT(ranks.errors(), HasSubstr("go on       with --resume=auto"));
}

// The one that leads is alone to know how many rows a set has: the others used to go on to the next one.
TEST_F(RanksCommandTest, ASetWithoutRowsBeforeAnotherEndsAllRanks) {
  for (const char* update : {"ASYNC", "SYNC micro_batches: 2"}) {
    const std::string job =
        small_.DeepJob("eval { set { name: 'few' share: 0.0001 } set { name: 'held' share: 0.2 } }\n");
    Process ranks("trainer",
                  {"--trainer_desc=" + job, "--output_dir=" + Folder("few"),
                   std::string("--set=dist={ update: ") + update + " }"},
                  {.ranks = 2});
    EXPECT_EQ(ranks.Wait(), 3) << ranks.errors();
    EXPECT_THAT(ranks.errors(), HasSubstr("nothing to evaluate in set \"few\""));
    EXPECT_THAT(ranks.errors(), Not(HasSubstr("ends without the others")));
  }
}

}  // namespace
}  // namespace millrace
