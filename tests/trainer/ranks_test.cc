// Jobs whose ranks are threads of this process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "config/trainer_desc_reader.h"
#include "core/file.h"
#include "dataset/instant_converter.h"
#include "e2e/small_job.h"
#include "job/run_hooks.h"
#include "paths.h"
#include "ranks/rank_group.h"
#include "ranks/rank_restarts.h"
#include "sanitized.h"
#include "trainer/builtin_trainers.h"
#include "trainer/default_environment.h"
#include "trainer/feature_preparation.h"
#include "trainer/in_process.h"
#include "trainer/job_run.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kSync[] = "dist { update: SYNC micro_batches: 8 } ";
constexpr char kSplit[] = "dist { update: SYNC micro_batches: 8 mode: SPLIT servers: 1 } ";
constexpr char kInMemory[] = "dataset { class_name: \"InMemoryDataset\" local_shuffle: true } ";
constexpr char kShuffled[] =
    "dataset { class_name: \"InMemoryDataset\" global_shuffle: true preload: true fleet_send_batch_size: 50 } ";

/// What the ranks of a run came to, by rank.
struct Ended {
  std::vector<Status> statuses;
  // Of the rank that leads at the end.
  RunSummary summary;
  std::pair<int64_t, int64_t> pulls;  ///< fetched ahead, and others
};

/// Numbers of ranks to try. What another number shows is no other order of threads: sanitizers see the first and last.
std::vector<int> Numbers(std::vector<int> numbers) {
  if (kIsSanitized) numbers = {numbers.front(), numbers.back() > 3 ? 3 : numbers.back()};
  return numbers;
}

/// Between checkpoints of which a test needs few: sanitizers take seconds for each.
const std::string kRareSteps = kIsSanitized ? "160" : "40";

struct RunOptions {
  std::string resume = "never";
  std::vector<std::string> overrides = {};
  int stop_after = 0;          ///< prints of rank 0, after which rank `stopped` is asked to stop; 0: never
  int stopped = 0;             ///< -1: all, as mpirun passes a signal on
  std::string stop_when = "";  ///< file that is there when rank `stopped` is to be asked, too
  std::function<void(int rank)> at_start = {};
  std::function<void()> at_print = {};  ///< of rank 0
  /// After so many prints, over all ranks that lead, the rank that had this number at first is lost.
  std::vector<std::pair<int, int>> losses = {};
};

/// Runs a job on `ranks` ranks.
Ended RunRanks(const std::string& path, int ranks, const std::string& output_dir, const RunOptions& options = {}) {
  LocalCluster cluster(ranks);
  Ended ended;
  std::vector<std::stop_source> stops(static_cast<size_t>(ranks));
  std::atomic<int> prints{0};
  const std::shared_ptr<const CompiledJob> job = CompileJob(path, output_dir, options.overrides);
  std::vector<std::atomic<bool>> is_gone(static_cast<size_t>(ranks));
  const auto run = [&](int r, RankGroup& group) -> Status {
    if (options.at_start) options.at_start(r);
    // A process that is gone holds no folder and no file any more.
    for (const auto& [after, lost] : options.losses) {
      while (prints >= after && !is_gone[static_cast<size_t>(lost)]) std::this_thread::yield();
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nobody(std::fopen("/dev/null", "w"), std::fclose);
    RunOutput output;
    output.terminal = nobody.get();
    output.fetched = [&](const FetchLine&) {
      if (options.at_print) options.at_print();
      const int print = ++prints;
      if (print == options.stop_after) stops[static_cast<size_t>(options.stopped)].request_stop();
      for (const auto& [after, lost] : options.losses) {
        if (print == after) cluster.Lose(lost);
      }
      return Status::Ok();
    };
    Result<std::unique_ptr<JobSession>> session = JobSession::Create(job, {.ranks = &group});
    MR_TRY(group.Agree(session.status()));
    const std::string resume = group.restarts()->count() > 0 ? "auto" : options.resume;
    const Result<RunSummary> summary =
        RunJob(**session, resume, "last", stops[static_cast<size_t>(r)].get_token(), output);
    if (group.leads() && summary.ok()) ended.summary = *summary;
    if (group.leads()) ended.pulls = group.tables().pulls();
    return summary.status();
  };
  const std::jthread stopper([&] {
    if (options.stop_when.empty()) return;
    while (!std::filesystem::exists(options.stop_when)) std::this_thread::yield();
    for (int r = 0; r < ranks; ++r) {
      if (options.stopped < 0 || options.stopped == r) stops[static_cast<size_t>(r)].request_stop();
    }
  });
  ended.statuses = OnRanks(cluster, [&](Communicator& communicator) {
    const int r = communicator.rank();
    const Status status = RunOnRanks(
        communicator, stops[static_cast<size_t>(r)].get_token(), [&](RankGroup& group) { return run(r, group); },
        [](const Status& /*failure*/) {});
    is_gone[static_cast<size_t>(r)] = true;
    return status;
  });
  return ended;
}

/// Of sums of doubles that were added in another order.
void ExpectNear(const MetricValues& values, const MetricValues& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(values[i].second, expected[i].second, 1e-12) << expected[i].first;
  }
}

class RanksTest : public testing::Test {
 protected:
  std::string Folder(const std::string& name) const { return small_.folder() + "/" + name; }
  std::vector<std::string> Model(const std::string& run) const { return FolderContent(Folder(run) + "/model"); }
  /// A pass of an incremental job, over the files from `first` until `last`.
  std::string Day(const std::string& name, int first, int last) const {
    std::string text = "pass { name: \"" + name + "\"";
    for (int i = first; i < last; ++i) text += " filelist: \"" + small_.files()[static_cast<size_t>(i)] + "\"";
    return text + " } ";
  }
  /// The override with which the reader of a file waits before its end for an hour, and makes `mark` when it does.
  std::string WaitAtTheEndOf(const std::string& file, const std::string& mark, int seconds_before_mark = 0) const {
    std::ofstream(Folder("wait.sh")) << "while read -r line; do\n"
                                     << "  if [ \"$line\" = WAIT ]; then sleep " << seconds_before_mark << "; touch "
                                     << mark << "; exec sleep 3600; fi\n"
                                     << "  echo \"$line\"\n"
                                     << "done\n";
    std::ofstream(file, std::ios::app) << "WAIT\n";
    return "data_desc.pipe_command=\"bash " + Folder("wait.sh") + "\"";
  }

  const SmallJob small_{1500, 11};
};

/// What a job in step says of ranks and rows.
class DatasetOfRanksTest : public RanksTest, public testing::WithParamInterface<std::string> {};

TEST_P(DatasetOfRanksTest, AnyNumberOfRanksTrainsToTheSameBytes) {
  const std::string job =
      small_.DeepJob(GetParam() + " epochs: 2 checkpoint { every_steps: 16 keep: 100 } eval { filelist: \"" +
                     small_.files()[0] + "\" }");
  std::vector<std::string> model;
  MetricValues metrics;
  MetricValues training;
  for (const int ranks : Numbers({1, 2, 3, 4, 8})) {
    const std::string name = "ranks_" + std::to_string(ranks);
    const Ended ended = RunRanks(job, ranks, Folder(name));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << ranks << " ranks: " << status.ToString();
    EXPECT_EQ(ended.summary.examples, 3000) << ranks << " ranks";
    EXPECT_EQ(ended.summary.data.lines, 1500) << ranks << " ranks";
    if (ranks == 1) {
      model = Model(name);
      training = ended.summary.metrics;
      ASSERT_FALSE(model.empty());
      metrics = ended.summary.eval.metrics;
      ASSERT_FALSE(metrics.empty());
    }
    EXPECT_EQ(Model(name), model) << ranks << " ranks";
    EXPECT_EQ(ended.summary.eval.metrics, metrics) << ranks << " ranks";
    ExpectNear(ended.summary.metrics, training);
  }
}

/// What a job of ranks says, and what keeps the model of another evaluation than the last one.
class BestModelOfRanksTest : public RanksTest,
                             public testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(BestModelOfRanksTest, IsSavedNotTheLast) {
  // The evaluation says the contrary of what is trained: the first one is the best.
  std::ofstream contrary(Folder("contrary"));
  std::ifstream in(small_.files()[0]);
  for (std::string line; std::getline(in, line);) {
    line[2] = line[2] == '0' ? '1' : '0';  // "1 LABEL ..."
    contrary << line << "\n";
  }
  contrary.close();
  const auto [dist, keeps] = GetParam();
  const std::string job = small_.DeepJob(std::string(dist) + " epochs: 3 checkpoint { keep: 2 " +
                                         (keeps[0] == 'k' ? keeps : "") + "} eval { filelist: \"" + Folder("contrary") +
                                         "\" every_epochs: 1 " + (keeps[0] == 'k' ? "" : keeps) + "}");
  for (const int ranks : {1, 3}) {
    SCOPED_TRACE(ranks);
    const std::string name = "ranks_" + std::to_string(ranks);
    const Ended ended = RunRanks(job, ranks, Folder(name));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(ended.summary.is_best_model);
    const int64_t best = ended.summary.eval.step;
    EXPECT_LT(best, ended.summary.batches);
    EXPECT_EQ(ended.summary.epochs, keeps[0] == 'k' ? 3 : 2);  // the others were stopped

    // A run that was over measures that model again, and saves the same.
    const std::vector<std::string> model = Model(name);
    ASSERT_FALSE(model.empty());
    const Ended again = RunRanks(job, ranks, Folder(name), {.resume = "auto"});
    for (const Status& status : again.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(again.summary.run_batches, 0);
    EXPECT_EQ(again.summary.eval.step, best);
    EXPECT_EQ(again.summary.eval.metrics, ended.summary.eval.metrics);
    EXPECT_EQ(Model(name), model);
  }
  // In step any number of ranks comes to the same one.
  if (dist == kSync) {
    EXPECT_EQ(Model("ranks_3"), Model("ranks_1"));
  }
}

INSTANTIATE_TEST_SUITE_P(Watched, BestModelOfRanksTest,
                         testing::Values(std::pair{kSync, "keep_best: \"auc\""},
                                         std::pair{kSync, "early_stopping { metric: \"logloss\" patience: 1 }"},
                                         std::pair{"dist { update: ASYNC }", "keep_best: \"auc\""},
                                         std::pair{"dist { update: ASYNC }",
                                                   "early_stopping { metric: \"logloss\" patience: 1 }"}));

TEST_F(RanksTest, RowsOfAMatrixAreAddedUpOverRanksToo) {
  const std::string job = small_.DeepJob(kSync);
  const std::vector<std::string> matrix = {"model.table[0].vocabulary=1000", "model.table[0].key=ID",
                                           "model.optimizer.clip.global_norm=0.5"};
  std::vector<std::string> model;
  for (const int ranks : {1, 3}) {
    const std::string name = "matrix_" + std::to_string(ranks);
    const Ended ended = RunRanks(job, ranks, Folder(name), {.overrides = matrix});
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    if (ranks == 1) model = Model(name);
    EXPECT_EQ(Model(name), model) << ranks << " ranks";
  }
}

TEST_F(RanksTest, AClipOfATablesNormIsRefusedAndOneOfItsValuesIsNot) {
  const std::string job = small_.DeepJob(kSync);
  const Ended values = RunRanks(job, 2, Folder("values"), {.overrides = {"model.table[0].optimizer.clip.value=0.01"}});
  EXPECT_TRUE(values.statuses[0].ok()) << values.statuses[0].ToString();
  const Ended ended = RunRanks(job, 2, Folder("norm"), {.overrides = {"model.table[0].optimizer.clip.norm=0.5"}});
  for (const Status& status : ended.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("table \"t\""), HasSubstr("clip_by_norm")));
  }
}

TEST_F(RanksTest, ARunInStepThatIsToGoOnOtherwiseIsToldWhatItBeganWith) {
  const Ended cut = RunRanks(small_.DeepJob(kSync + std::string("epochs: 3")), 2, Folder("cut"), {.stop_after = 2});
  ASSERT_TRUE(cut.summary.interrupted);
  const Ended other =
      RunRanks(small_.DeepJob("dist { update: ASYNC } epochs: 3"), 2, Folder("cut"), {.resume = "auto"});
  EXPECT_EQ(other.statuses[0].code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(other.statuses[0].message(),
              AllOf(HasSubstr("dist.micro_batches was 8 and is now (none)"),
                    HasSubstr("a step of dist.update: SYNC takes a batch of each of micro_batches streams")));
}

TEST_F(RanksTest, OneProcessWithoutDistGoesOnFromRanksInStepAndTheyFromIt) {
  // A stop takes effect at the next checkpoint, within an epoch.
  const auto job = [this](const std::string& dist) {
    return small_.DeepJob(dist + "epochs: 3 checkpoint { every_steps: 16 }");
  };
  const auto expect_rest = [](const RunSummary& rest) {
    EXPECT_EQ(rest.examples, 4500);
    EXPECT_NE(rest.run_examples % 1500, 0) << "it went on from the end of an epoch";
  };
  const Ended cut = RunRanks(job(kSync), 2, Folder("ranks"), {.stop_after = 2});
  ASSERT_TRUE(cut.summary.interrupted);
  const Result<RunSummary> alone = RunJob(*MakeJob(job(""), Folder("ranks")), "auto", "last", {});
  ASSERT_TRUE(alone.ok()) << alone.status().ToString();
  expect_rest(*alone);

  std::stop_source stop;
  RunOutput output;
  output.fetched = [&stop](const FetchLine&) {
    stop.request_stop();
    return Status::Ok();
  };
  ASSERT_TRUE(RunJob(*MakeJob(job(""), Folder("process")), "never", "last", stop.get_token(), output)->interrupted);
  const Ended ranks = RunRanks(job(kSync), 2, Folder("process"), {.resume = "auto"});
  ASSERT_TRUE(ranks.statuses[0].ok()) << ranks.statuses[0].ToString();
  expect_rest(ranks.summary);
}

TEST_P(DatasetOfRanksTest, ARunGoesOnWithAnotherNumberOfRanksWhereItWasStopped) {
  const std::string job =
      small_.DeepJob(GetParam() + " epochs: 3 checkpoint { every_steps: 16 keep: 100 } eval { filelist: \"" +
                     small_.files()[0] + "\" every_steps: 24 }");
  const Ended whole = RunRanks(job, 2, Folder("whole"));
  ASSERT_TRUE(whole.statuses[0].ok()) << whole.statuses[0].ToString();
  // Rank 2 alone is asked to stop; then rank 0; the last run has one rank.
  const Ended first = RunRanks(job, 3, Folder("cut"), {.stop_after = 2, .stopped = 2});
  for (const Status& status : first.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(first.summary.interrupted);
  EXPECT_LT(first.summary.examples, 4500);
  const Ended second = RunRanks(job, 4, Folder("cut"), {.resume = "auto", .stop_after = 5});
  for (const Status& status : second.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(second.summary.interrupted);
  EXPECT_GT(second.summary.examples, first.summary.examples);
  const Ended last = RunRanks(job, 1, Folder("cut"), {.resume = "auto"});
  ASSERT_TRUE(last.statuses[0].ok()) << last.statuses[0].ToString();
  EXPECT_EQ(last.summary.examples, 4500);
  EXPECT_EQ(Model("cut"), Model("whole"));
  ExpectNear(last.summary.metrics, whole.summary.metrics);
  EXPECT_EQ(last.summary.eval.metrics, whole.summary.eval.metrics);
}

TEST_P(DatasetOfRanksTest, RanksThatAreLeftGoOnToTheSameBytes) {
  const std::string job =
      small_.DeepJob(GetParam() + " epochs: 3 checkpoint { every_steps: 8 keep: 100 } eval { filelist: \"" +
                     small_.files()[0] + "\" every_steps: 24 }");
  const Ended whole = RunRanks(job, 2, Folder("whole"));
  ASSERT_TRUE(whole.statuses[0].ok()) << whole.statuses[0].ToString();
  // One that follows, then the one that leads, then the one that leads instead.
  const Ended ended = RunRanks(job, 4, Folder("lost"), {.losses = {{2, 2}, {5, 0}, {8, 1}}});
  EXPECT_TRUE(ended.statuses[3].ok()) << ended.statuses[3].ToString();
  for (const int lost : {0, 1, 2}) {
    EXPECT_EQ(ended.statuses[static_cast<size_t>(lost)].code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(ended.summary.restarts, 3);
  EXPECT_GT(ended.summary.recovery_seconds, 0);
  EXPECT_EQ(ended.summary.examples, 4500);
  EXPECT_EQ(Model("lost"), Model("whole"));
  EXPECT_EQ(ended.summary.eval.metrics, whole.summary.eval.metrics);
}

TEST_P(DatasetOfRanksTest, DaysLeaveTheSameModelsForAnyNumberOfRanks) {
  const std::string job = small_.DeepJob(GetParam() + " incremental { " + Day("monday", 0, 3) + Day("tuesday", 3, 11) +
                                         "save_interval: 1 }");
  std::vector<std::string> models;
  for (const int ranks : {1, 3}) {
    const std::string name = "days_" + std::to_string(ranks);
    const Ended ended = RunRanks(job, ranks, Folder(name));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << ranks << " ranks: " << status.ToString();
    EXPECT_EQ(ended.summary.examples, 1500) << ranks << " ranks";
    const std::vector<std::string> left = FolderContent(Folder(name) + "/models");
    EXPECT_FALSE(left.empty());
    if (ranks == 1) models = left;
    EXPECT_EQ(left, models) << ranks << " ranks";
  }
}

/// Ranks that serve show no other order of threads than those that train: sanitizers see one job of them.
std::vector<std::string> JobsInStep() {
  const std::string sync = kSync;
  const std::string split = kSplit;
  std::vector<std::string> jobs = {sync, sync + kInMemory, sync + kShuffled, split + kShuffled};
  if (!kIsSanitized) jobs.insert(jobs.end(), {split, split + kInMemory});
  return jobs;
}

INSTANTIATE_TEST_SUITE_P(Datasets, DatasetOfRanksTest, testing::ValuesIn(JobsInStep()), [](const auto& job) {
  const std::string split = job.param.find("SPLIT") != std::string::npos ? "Split" : "";
  if (job.param.find("global") != std::string::npos) return split + "GlobalShuffle";
  return split + (job.param.find("InMemory") != std::string::npos ? "InMemory" : "Queue");
});

TEST_F(RanksTest, BinaryFilesAreSharedOutAmongRanksInStepOrNot) {
  const std::shared_ptr<const CompiledJob> text = CompileJob(small_.DeepJob(""), "");
  const ConvertRequest request{
      &text->desc().data_desc(), text->environment().feeds, small_.files(), Folder("binary"), "part", 8000};
  ASSERT_TRUE(ConvertToInstant(request, {}).ok());
  const std::string part = Folder("binary") + "/part-";
  const std::string job = small_.DeepJob(
      std::string(kSync) + "epochs: 2 checkpoint { every_steps: 16 keep: 100 } eval { filelist: \"" + part +
      "00000\" } dataset { class_name: \"FileInstantDataset\" }\nfilelist: \"" + part + "?????\"");
  MetricValues metrics;
  for (const int ranks : {1, 2, 5}) {
    const std::string name = "ranks_" + std::to_string(ranks);
    const Ended ended = RunRanks(job, ranks, Folder(name));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << ranks << " ranks: " << status.ToString();
    EXPECT_EQ(ended.summary.examples, 3000) << ranks << " ranks";
    EXPECT_GT(ended.summary.data.files, ranks);
    if (ranks == 1) metrics = ended.summary.eval.metrics;
    EXPECT_EQ(ended.summary.eval.metrics, metrics) << ranks << " ranks";
    EXPECT_EQ(Model(name), Model("ranks_1")) << ranks << " ranks";
  }
  const RunOptions stops{.overrides = {"dist={ update: ASYNC }", "thread_num=2", "epochs=3"}, .stop_after = 3};
  const Ended cut = RunRanks(job, 3, Folder("cut"), stops);
  for (const Status& status : cut.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(cut.summary.interrupted);
  const Ended last = RunRanks(job, 2, Folder("cut"), {.resume = "auto", .overrides = stops.overrides});
  for (const Status& status : last.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(last.summary.examples, 4500);
  EXPECT_NEAR(last.summary.eval.metrics[0].second, metrics[0].second, 0.01);
}

TEST_F(RanksTest, WithoutRanksAGlobalShuffleIsALocalOne) {
  for (const std::string shuffle : {"local_shuffle", "global_shuffle"}) {
    const std::string job =
        small_.DeepJob("update_mode: SERIAL dataset { class_name: \"InMemoryDataset\" " + shuffle + ": true }");
    ASSERT_TRUE(RunJob(*MakeJob(job, Folder(shuffle)), "never", "last", {}).ok());
  }
  EXPECT_EQ(Model("global_shuffle"), Model("local_shuffle"));
}

TEST_F(RanksTest, ABadLineEndsAllRanksBeforeTheyShuffle) {
  std::ofstream(small_.files()[3], std::ios::app) << "1 no_number\n";
  const std::string job =
      small_.DeepJob(std::string(kSync) + "dataset { class_name: \"InMemoryDataset\" global_shuffle: true }");
  const Ended ended = RunRanks(job, 4, Folder("bad_load"));
  for (const Status& status : ended.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kBadData);
    EXPECT_THAT(status.message(), HasSubstr("part-3:"));
  }
  EXPECT_THAT(ended.statuses[0].message(), HasSubstr("rank 1 ("));
}

TEST_F(RanksTest, WhatEndsTheLoadOfOneRankEndsThatOfAll) {
  // Rank 0 waits for the end of its file: it would for an hour.
  const std::string mark = Folder("mark");
  const std::vector<std::string> waits = {WaitAtTheEndOf(small_.files()[0], mark)};
  for (const std::string rows : {kInMemory, kShuffled}) {
    SCOPED_TRACE(rows);
    const std::string preloaded = "preload: true ";
    std::string loaded = rows;
    if (const size_t at = loaded.find(preloaded); at != std::string::npos) loaded.erase(at, preloaded.size());
    const std::string job = small_.DeepJob(kSync + loaded);
    std::filesystem::remove(mark);
    const Ended cut = RunRanks(job, 3, Folder("cut"), {.overrides = waits, .stopped = 1, .stop_when = mark});
    for (const Status& status : cut.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(cut.summary.interrupted);
    EXPECT_EQ(cut.summary.examples, 0);
  }
  // Of the second rank's streams.
  std::ofstream(small_.files()[4], std::ios::app) << "1 no_number\n";
  const Ended bad = RunRanks(small_.DeepJob(kSync + std::string(kInMemory)), 3, Folder("bad"), {.overrides = waits});
  for (const Status& status : bad.statuses) EXPECT_EQ(status.code(), StatusCode::kBadData) << status.ToString();
  EXPECT_THAT(bad.statuses[0].message(), AllOf(HasSubstr("rank 1 ("), HasSubstr("part-4:")));
}

TEST_F(RanksTest, WhatEndsTheLoadOfADayOfOneRankEndsThatOfAll) {
  // A rank waits for the end of a file of the second day, which is loaded beside the training of the first.
  const std::string mark = Folder("mark");
  const std::string wait = WaitAtTheEndOf(small_.files()[3], mark, 1);
  const std::string job =
      small_.DeepJob(kSync + std::string(kInMemory) + "checkpoint { every_epochs: 0 } incremental { " +
                     Day("monday", 0, 3) + Day("tuesday", 3, 9) + "}");
  const Ended cut = RunRanks(job, 3, Folder("cut"), {.overrides = {wait}, .stopped = 1, .stop_when = mark});
  for (const Status& status : cut.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(cut.summary.interrupted);
  EXPECT_GT(cut.summary.saved_step, 0);

  // Where the checkpoint cannot be saved that is the end of all ranks, too.
  std::filesystem::remove(mark);
  const std::string checkpoints = Folder("full") + "/checkpoints";
  const auto fill = [&] {
    std::filesystem::remove_all(checkpoints);
    std::ofstream(checkpoints) << "a file";
  };
  const Ended full =
      RunRanks(job, 3, Folder("full"), {.overrides = {wait}, .stopped = -1, .stop_when = mark, .at_print = fill});
  for (const Status& status : full.statuses) EXPECT_FALSE(status.ok());
}

/// What each of `ranks` ranks knows of the features of the job in `file`.
struct Prepared {
  Status status;
  std::string states;
};
std::vector<Prepared> PrepareFeaturesOn(
    int ranks, const std::string& file, std::span<std::stop_source> stops,
    const std::function<void()>& meanwhile = [] {}) {
  const std::jthread beside(meanwhile);
  return OnRanks(ranks, [&](Communicator& communicator) {
    RankGroup group(communicator);
    ConfigRequest request;
    request.file = file;
    request.known = NamesOf(DefaultEnvironment());
    LoadedConfig config = LoadTrainerDesc(request).value();
    const std::stop_token stop = stops[static_cast<size_t>(group.rank())].get_token();
    const Status status = PrepareFeatures({.ranks = group}, DefaultEnvironment(), stop, &config);
    return Prepared{status, config.desc->data_desc().feature_states().ShortDebugString()};
  });
}

/// A job that standardizes ages and has a word of each row, and what else its data_desc has.
std::string AgesJob(const std::string& files, const std::string& more) {
  return "filelist: \"" + files + "\" data_desc { name: \"csv\" " + more +
         " feature { name: \"label\" id {} is_dense: true } feature { name: \"age\" default_from: MEDIAN standardize "
         "{} } "
         "feature { name: \"word\" vocabulary { min_count: 1 } } }\n"
         "model { layer { name: \"z\" fc { in: \"age\" units: 1 } } loss { kind: SIGMOID_CROSS_ENTROPY in: \"z\" "
         "label: \"label\" } optimizer { sgd { lr: 0.1 } } }";
}

TEST_F(RanksTest, MoreRanksThanMicroBatchesAreRefusedBeforeStatistics) {
  const std::string mark = Folder("mark");
  std::ofstream(Folder("data.csv")) << "label,age,word\n1,30,a\n";
  std::ofstream(Folder("job.prototxt")) << AgesJob(Folder("data.csv"), "pipe_command: \"touch " + mark + "; cat\"")
                                        << " dist { update: SYNC micro_batches: 2 }\n";
  std::array<std::stop_source, 3> stops;
  for (const Prepared& rank : PrepareFeaturesOn(3, Folder("job.prototxt"), stops)) {
    EXPECT_EQ(rank.status.code(), StatusCode::kInvalidConfig) << rank.status.ToString();
    EXPECT_THAT(rank.status.message(), HasSubstr("a step of 2 batches has none for some of 3 ranks"));
  }
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(RanksTest, AStopOfAnyRankEndsStatistics) {
  const std::string mark = Folder("mark");
  std::ofstream(Folder("data.csv")) << "label,age,word\n1,30,a\n";
  std::ofstream(Folder("job.prototxt")) << AgesJob(Folder("data.csv"),
                                                   "pipe_command: \"cat && touch " + mark + " && exec sleep 3600\"");
  std::array<std::stop_source, 2> stops;
  for (const Prepared& rank : PrepareFeaturesOn(2, Folder("job.prototxt"), stops, [&] {
         while (!std::filesystem::exists(mark)) std::this_thread::yield();
         stops[1].request_stop();
       })) {
    EXPECT_EQ(rank.status.code(), StatusCode::kCancelled) << rank.status.ToString();
    EXPECT_THAT(rank.status.message(), HasSubstr("stopped while statistics of features were taken"));
  }
}

TEST_F(RanksTest, EachRankTakesStatisticsOfItsFilesAndAllKnowTheSum) {
  const std::string read = Folder("read");
  std::filesystem::create_directory(read);
  constexpr int kFiles = 5;
  for (int i = 0; i < kFiles; ++i) {
    std::ofstream(Folder("ages-" + std::to_string(i)))
        << "label,age,word\n1," << 30.1 + i << ",w" << i << "\n0," << 0.7 * i << ",w0\n";
  }
  const std::string job = Folder("job.prototxt");
  std::ofstream(job) << AgesJob(Folder("ages-*"), "pipe_command: \"mktemp -p " + read + " >&2; cat\"");
  const auto files_read = [&] {
    return std::distance(std::filesystem::directory_iterator(read), std::filesystem::directory_iterator());
  };
  std::array<std::stop_source, 7> stops;
  const std::string expected = PrepareFeaturesOn(1, job, stops)[0].states;
  EXPECT_THAT(expected, AllOf(HasSubstr("word: \"w0\""), HasSubstr("default_number: 2.8 "), HasSubstr("rows: 10")));
  EXPECT_EQ(files_read(), kFiles);
  for (const int ranks : {2, 3, 7}) {
    SCOPED_TRACE(ranks);
    std::filesystem::remove_all(read);
    std::filesystem::create_directory(read);
    for (const Prepared& rank : PrepareFeaturesOn(ranks, job, stops)) {
      EXPECT_TRUE(rank.status.ok()) << rank.status.ToString();
      EXPECT_EQ(rank.states, expected);
    }
    EXPECT_EQ(files_read(), kFiles);
  }
  std::ofstream(Folder("ages-1"), std::ios::app) << "1,old,w\n";
  for (const Prepared& rank : PrepareFeaturesOn(2, job, stops)) {
    EXPECT_EQ(rank.status.code(), StatusCode::kBadData) << rank.status.ToString();
    EXPECT_THAT(rank.status.message(), HasSubstr("ages-1:4:3"));
  }
}

TEST_F(RanksTest, LinesThatRanksLeaveOutAreCountedTogether) {
  // A file of each rank, in step or not.
  for (const size_t file : {0U, 4U, 5U}) std::ofstream(small_.files()[file], std::ios::app) << "1 x\n1 y\n";
  const std::string most = "data_desc.bad_lines={ action: QUARANTINE max_lines: ";
  for (const std::string& dist :
       {std::string(kSync), kSync + std::string(kInMemory), "dist { update: ASYNC } " + std::string(kInMemory)}) {
    SCOPED_TRACE(dist);
    const std::string out = Folder("out_" + std::to_string(dist.size()));
    const std::string job = small_.DeepJob(dist + "epochs: 2 checkpoint { every_steps: 1000 }");
    const Ended over = RunRanks(job, 3, out, {.overrides = {most + "5 }"}});
    for (const Status& status : over.statuses) EXPECT_EQ(status.code(), StatusCode::kBadData) << status.ToString();
    EXPECT_THAT(over.statuses[0].message(), AllOf(HasSubstr("too many bad lines: 6 among the 1506 lines of all ranks, "
                                                            "more than data_desc.bad_lines { max_lines: 5 } allows"),
                                                  HasSubstr("part-0:"), HasSubstr("part-4:"), HasSubstr("part-5:")));
    const Ended within = RunRanks(job, 3, out, {.resume = "auto", .overrides = {most + "6 }"}});
    for (const Status& status : within.statuses) EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(within.summary.examples, 3000);
    const Ended anew = RunRanks(job, 3, out + "_anew", {.overrides = {most + "6 }"}});
    EXPECT_EQ(anew.summary.data.quarantine_path, out + "_anew/bad_lines.txt, " + out + "_anew/bad_lines.rank-1.txt, " +
                                                     out + "_anew/bad_lines.rank-2.txt");
  }
}

TEST_F(RanksTest, UsersThatRanksShuffleByAreReadFromASlotOfIds) {
  const std::string job = small_.DeepJob(
      std::string(kSync) + "dataset { class_name: \"InMemoryDataset\" global_shuffle: true shuffle_by_uid: true }");
  const std::vector<std::string> by_ids = {"data_desc.multi_slot_desc.uid_slot=A"};
  std::vector<std::string> model;
  for (const int ranks : {1, 3}) {
    const std::string name = "users_" + std::to_string(ranks);
    const Ended ended = RunRanks(job, ranks, Folder(name), {.overrides = by_ids});
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(ended.summary.examples, 1500);
    if (ranks == 1) model = Model(name);
    EXPECT_EQ(Model(name), model);
  }
  // The label is a float.
  const Ended ended = RunRanks(job, 2, Folder("by_label"), {.overrides = {"data_desc.multi_slot_desc.uid_slot=label"}});
  for (const Status& status : ended.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(status.message(), HasSubstr("slot \"label\" is none"));
  }
}

TEST_F(RanksTest, ABadLineOfOneRankEndsAllWithItsPlace) {
  // Part 3 is of stream 3, which is of rank 1 of 4.
  std::ofstream(small_.files()[3], std::ios::app) << "1 no_number\n";
  const std::string job = small_.DeepJob(std::string(kSync) + "epochs: 2 checkpoint { every_steps: 1000 }");
  const Ended ended = RunRanks(job, 4, Folder("bad"));
  for (const Status& status : ended.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kBadData);
    EXPECT_THAT(status.message(), HasSubstr("part-3:"));
    EXPECT_THAT(status.message(), HasSubstr("--resume=auto goes on from step "));
  }
  EXPECT_THAT(ended.statuses[0].message(), HasSubstr("rank 1 ("));
  EXPECT_THAT(ended.statuses[1].message(), HasSubstr("rank 0 ("));
}

TEST_F(RanksTest, AnOperatorThatFailsOnOneRankLeavesTheStepBeforeItToTheBytesOfAnUndisturbedRun) {
  const std::string job = small_.DeepJob(std::string(kSync) + "epochs: 2");
  const Ended whole = RunRanks(job, 3, Folder("whole"));
  ASSERT_TRUE(whole.statuses[0].ok()) << whole.statuses[0].ToString();

  // Within the third step, of a micro-batch that is not the first one of its rank.
  const std::string file = small_.files()[5];
  const std::string sound = ReadFile(file).value();
  std::string bad = sound;
  size_t line = 0;
  for (int i = 0; i < 80; ++i) line = bad.find('\n', line) + 1;
  bad.replace(line, 3, "1 7");
  std::ofstream(file) << bad;
  const Ended failed = RunRanks(job, 3, Folder("failed"));
  for (const Status& status : failed.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kBadData);
    EXPECT_THAT(status.message(), HasSubstr("part-5:81 is 7"));
  }
  EXPECT_THAT(failed.statuses[0].message(),
              HasSubstr("what was trained before is kept: --resume=auto goes on from step 16;"));

  std::ofstream(file) << sound;
  const Ended rest =
      RunRanks(job, 3, Folder("failed"), {.resume = "auto", .overrides = {"checkpoint.accept_changed_files=true"}});
  ASSERT_TRUE(rest.statuses[0].ok()) << rest.statuses[0].ToString();
  EXPECT_EQ(rest.summary.examples, 3000);
  EXPECT_EQ(rest.summary.run_examples, 3000 - 16 * 32);
  EXPECT_EQ(rest.summary.metrics, whole.summary.metrics);
  EXPECT_EQ(Model("failed"), Model("whole"));
}

// Metrics of a step count behind it, from copies.
TEST_F(RanksTest, WeightedMetricsOfStepsAreThoseOfBatches) {
  const std::vector<std::string> still = {"model.optimizer={ sgd { lr: 1e-30 } }",
                                          "model.table[t].optimizer={ sgd { lr: 1e-30 } }",
                                          "model.loss[0].sample_weight=label"};
  std::map<std::string, double> metrics[2];
  for (const bool in_step : {false, true}) {
    const Ended ended = RunRanks(small_.DeepJob(in_step ? kSync : "thread_num: 1 "), in_step ? 2 : 1,
                                 Folder(in_step ? "steps" : "batches"), {.overrides = still});
    ASSERT_TRUE(ended.statuses[0].ok()) << ended.statuses[0].ToString();
    for (const auto& [name, value] : ended.summary.metrics) metrics[in_step ? 1 : 0][name] = value;
  }
  for (const char* const name : {"logloss", "calibration"}) EXPECT_NEAR(metrics[0].at(name), metrics[1].at(name), 1e-6);
}

TEST_F(RanksTest, LinesThatAreSkippedAreCountedOverAllRanks) {
  for (const int part : {1, 6, 10}) std::ofstream(small_.files()[static_cast<size_t>(part)], std::ios::app) << "bad\n";
  const std::string job = small_.DeepJob(kSync);
  const Ended ended = RunRanks(job, 4, Folder("skipped"), {.overrides = {"data_desc.bad_lines.action=SKIP"}});
  ASSERT_TRUE(ended.statuses[0].ok()) << ended.statuses[0].ToString();
  EXPECT_EQ(ended.summary.examples, 1500);
  EXPECT_EQ(ended.summary.data.bad_lines, 3);
  EXPECT_EQ(ended.summary.data.files, 11);
  EXPECT_EQ(ended.summary.data.lines, 1503);
}

TEST_F(RanksTest, BadLinesStandOnceInTheFilesOfRanks) {
  std::vector<std::string> expected;
  for (size_t file = 0; file < small_.files().size(); ++file) {
    std::ofstream(small_.files()[file], std::ios::app) << "1 x" << file << "\n";
    expected.push_back("1 x" + std::to_string(file));
  }
  std::sort(expected.begin(), expected.end());
  int run = 0;
  for (const char* dist : {kSync, "dist { update: ASYNC } "}) {
    for (const int ranks : Numbers({1, 2, 3})) {
      SCOPED_TRACE(std::string(dist) + std::to_string(ranks));
      const std::string out = Folder("quarantine_" + std::to_string(run++));
      const std::string job = small_.DeepJob(std::string(dist) + "epochs: 3");
      const Ended ended =
          RunRanks(job, ranks, out,
                   {.overrides = {"data_desc.bad_lines={ action: QUARANTINE max_lines: 100 max_fraction: 1 }"}});
      for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
      std::vector<std::string> lines;
      for (const auto& entry : std::filesystem::directory_iterator(out)) {
        if (!entry.path().filename().string().starts_with("bad_lines")) continue;
        std::ifstream in(entry.path());
        for (std::string line; std::getline(in, line);) lines.push_back(line.substr(line.rfind('\t') + 1));
      }
      std::sort(lines.begin(), lines.end());
      EXPECT_EQ(lines, expected);
    }
  }
}

TEST_F(RanksTest, MoreRanksThanMicroBatchesAreRefused) {
  const std::string job = small_.DeepJob(kSync);
  const Ended ended = RunRanks(job, 12, Folder("too_many"));
  for (const Status& status : ended.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(status.message(), HasSubstr("12 ranks"));
  }
}

TEST_F(RanksTest, AJobOfRanksIsOneRankWhereNobodyStartedMore) {
  const std::string job = small_.DeepJob(kSync);
  const Ended two = RunRanks(job, 2, Folder("two"));
  ASSERT_TRUE(two.statuses[0].ok()) << two.statuses[0].ToString();
  const std::unique_ptr<JobSession> session = MakeJob(job, Folder("alone"));
  ASSERT_TRUE(RunJob(*session, "never", "last", {}).ok());
  EXPECT_EQ(Model("alone"), Model("two"));
}

TEST_F(RanksTest, OperatorsThatAreSkippedAreLeftOutBeforeTheProgramIsCut) {
  const std::string job = small_.DeepJob(std::string(kSync) + "hogwild_param { skip_ops: \"adam\" }");
  for (const int ranks : {1, 3}) {
    const Ended ended = RunRanks(job, ranks, Folder("skip_" + std::to_string(ranks)));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_EQ(Model("skip_3"), Model("skip_1"));
}

TEST_F(RanksTest, WhatOneRankThrowsInABatchEndsAll) {
  const std::string job = small_.DeepJob(kSync);
  const Ended ended =
      RunRanks(job, 3, Folder("thrown"), {.at_print = [] { throw std::runtime_error("thrown in a batch"); }});
  for (const Status& status : ended.statuses) EXPECT_THAT(status.message(), HasSubstr("thrown in a batch"));
}

/// Loses half of the first large message that its rank gets from another.
class CuttingCommunicator final : public Communicator {
 public:
  CuttingCommunicator(Communicator& whole, bool cuts) : whole_(&whole), cuts_(cuts) {}
  int rank() const override { return whole_->rank(); }
  int size() const override { return whole_->size(); }
  void SetReceiver(MessageReceiver* receiver) override { whole_->SetReceiver(receiver); }
  Status Send(int to, std::string message) override { return whole_->Send(to, std::move(message)); }
  Status WaitUntil(const std::function<bool()>& done) override { return whole_->WaitUntil(done); }
  Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) override {
    MR_TRY(whole_->AllToAll(out, in));
    std::string& first = (*in)[0];
    if (first.size() < 1000 || !std::exchange(cuts_, false)) return Status::Ok();
    first.resize(first.size() / 2);
    return Status::Ok();
  }
  Status SumOverRanks(std::span<int64_t> values) override { return whole_->SumOverRanks(values); }
  Status Broadcast(int root, std::string* bytes) override { return whole_->Broadcast(root, bytes); }
  Status Barrier() override { return whole_->Barrier(); }
  Status Shrink() override { return whole_->Shrink(); }
  int64_t bytes_sent() const override { return whole_->bytes_sent(); }

 private:
  Communicator* whole_;
  bool cuts_;
};

TEST_F(RanksTest, GradientsThatOneRankCannotAddUpEndAll) {
  const auto job = CompileJob(small_.DeepJob(kSync), Folder("cut"), {});
  const std::vector<Status> statuses = OnRanks(3, [&](Communicator& whole) {
    CuttingCommunicator communicator(whole, whole.rank() == 2);
    RankGroup group(communicator);
    const std::unique_ptr<JobSession> session = JobSession::Create(job, {.ranks = &group}).value();
    EXPECT_TRUE(session->InitParameters({}).ok());
    const Status status =
        CreateTrainer(*session, {nullptr, nullptr, nullptr, std::nullopt, {}}).value()->Run({}).status();
    EXPECT_TRUE(communicator.Barrier().ok());
    return status;
  });
  for (const Status& status : statuses) EXPECT_THAT(status.message(), HasSubstr("a rank sent half of gradient"));
}

/// Cannot write what a pass came to.
class FullDiskReporter final : public RunReporter {
 public:
  void OnTick(const RunProgress& /*progress*/) override {}
  Status OnLoad(const PassStats& /*load*/) override { return Status::Ok(); }
  Status OnFetch(const FetchLine& /*line*/) override { return Status::Ok(); }
  Status OnPoint(const FetchLine& /*line*/) override { return Status::Ok(); }
  Status OnEval(const EvalReport& /*report*/) override { return Status::Ok(); }
  Status OnPass(const PassReport& /*report*/) override { return IoError("no space left for the pass"); }
};

TEST_F(RanksTest, AReportThatRankZeroCannotWriteEndsAll) {
  const auto job = CompileJob(small_.DeepJob(std::string(kSync) + "epochs: 2"), Folder("full"), {});
  const std::vector<Status> statuses = OnRanks(2, [&](Communicator& communicator) {
    RankGroup group(communicator);
    FullDiskReporter full;
    const std::unique_ptr<JobSession> session = JobSession::Create(job, {.ranks = &group}).value();
    EXPECT_TRUE(session->InitParameters({}).ok());
    const std::unique_ptr<Trainer> trainer =
        CreateTrainer(*session, {nullptr, group.leads() ? &full : nullptr, nullptr, std::nullopt, {}}).value();
    const Status status = trainer->Run({}).status();
    EXPECT_TRUE(communicator.Barrier().ok());
    return status;
  });
  for (const Status& status : statuses) EXPECT_THAT(status.message(), HasSubstr("no space left for the pass"));
}

TEST_F(RanksTest, RanksTrainOnTheMeanOfMicroBatches) {
  // One micro-batch a step is a batch as ever: the same numbers as one process without ranks, in file order.
  const SmallJob one_file(320, 1);
  const std::string plain = one_file.DeepJob("update_mode: SERIAL fuse: false");
  ASSERT_TRUE(RunJob(*MakeJob(plain, Folder("plain")), "never", "last", {}).ok());
  const std::string job = one_file.DeepJob("fuse: false dist { update: SYNC micro_batches: 1 }");
  const Ended ended = RunRanks(job, 1, Folder("one"));
  ASSERT_TRUE(ended.statuses[0].ok()) << ended.statuses[0].ToString();
  EXPECT_EQ(Model("one"), Model("plain"));
}

TEST_F(RanksTest, RowsOfAStepAreFetchedWhileTheMicroBatchBeforeIsRun) {
  for (const std::string fuse : {"true", "false"}) {
    const std::string job = small_.DeepJob("dist { update: SYNC micro_batches: 4 } fuse: " + fuse);
    const Ended ended = RunRanks(job, 2, Folder("fuse_" + fuse));
    ASSERT_TRUE(ended.statuses[0].ok()) << ended.statuses[0].ToString();
    const auto [fetched, others] = ended.pulls;  // others: of the rows that a step updates, once a step
    EXPECT_GT(fetched, others) << "fuse: " << fuse;
  }
}

// Ranks at their own pace (dist { update: ASYNC | SSP | GEO }).

struct Pace {
  const char* name;
  const char* job;
};

class PacedRanksTest : public RanksTest, public testing::WithParamInterface<Pace> {};

TEST_P(PacedRanksTest, EveryLineIsTrainedOnceAndTheModelIsAsGood) {
  const std::string eval = " epochs: 3 eval { filelist: \"" + small_.files()[0] + "\" every_steps: 24 }";
  const Result<RunSummary> alone = RunJob(*MakeJob(small_.DeepJob(eval), Folder("alone")), "never", "last", {});
  ASSERT_TRUE(alone.ok()) << alone.status().ToString();
  for (const int ranks : Numbers({1, 2, 3, 5})) {
    const std::string name = "ranks_" + std::to_string(ranks);
    const Ended ended = RunRanks(small_.DeepJob(GetParam().job + eval), ranks, Folder(name));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << ranks << " ranks: " << status.ToString();
    EXPECT_EQ(ended.summary.examples, 4500) << ranks << " ranks";
    EXPECT_GE(ended.summary.batches, alone->batches) << ranks << " ranks";
    EXPECT_EQ(ended.summary.data.lines, 1500) << ranks << " ranks";
    EXPECT_EQ(ended.summary.data.files, 11) << ranks << " ranks";
    ASSERT_FALSE(ended.summary.eval.metrics.empty());
    EXPECT_NEAR(ended.summary.eval.metrics[0].second, alone->eval.metrics[0].second, 0.15) << ranks << " ranks";
  }
}

TEST_F(RanksTest, RowsAreFetchedWhileTheBatchBeforeIsTrained) {
  const std::string epochs = " epochs: 8";
  for (const bool fuse : {true, false}) {
    const std::string options = fuse ? epochs : epochs + " fuse: false";
    const Ended ended =
        RunRanks(small_.DeepJob("dist { update: ASYNC }" + options), 2, Folder(fuse ? "fused" : "plain"));
    ASSERT_TRUE(ended.statuses[0].ok()) << ended.statuses[0].ToString();
    EXPECT_EQ(ended.summary.examples, 12000);
    const auto [fetched, others] = ended.pulls;
    EXPECT_GT(fetched, others) << "fuse: " << fuse;
  }
  const Ended bounded = RunRanks(small_.DeepJob("dist { update: SSP staleness: 0 }" + epochs), 2, Folder("bounded"));
  EXPECT_EQ(bounded.pulls.first, 0) << "rows would be older than promised";
}

TEST_P(PacedRanksTest, ARunGoesOnWhereOneRankWasStopped) {
  const std::string job =
      small_.DeepJob(std::string(GetParam().job) + " epochs: 10 checkpoint { every_steps: " + kRareSteps + " }");
  int64_t examples = 0;
  for (const int stopped : {2, 0, 1}) {
    const Ended cut = RunRanks(job, 3, Folder("cut"), {.resume = "auto", .stop_after = 4, .stopped = stopped});
    for (const Status& status : cut.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(examples > 0 || cut.summary.interrupted);
    // A stop may come as late as the end.
    if (!cut.summary.interrupted) break;
    EXPECT_GT(cut.summary.examples, examples) << stopped;
    examples = cut.summary.examples;
    EXPECT_LT(examples, 15000);
  }
  const Ended last = RunRanks(job, 3, Folder("cut"), {.resume = "auto"});
  for (const Status& status : last.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(last.summary.examples, 15000);
}

TEST_P(PacedRanksTest, RanksThatAreLeftTrainEachLineOnce) {
  const int epochs = kIsSanitized ? 4 : 8;
  const std::string job = small_.DeepJob(std::string(GetParam().job) + " epochs: " + std::to_string(epochs) +
                                         " checkpoint { every_steps: 20 }");
  const Ended ended = RunRanks(job, 4, Folder("lost"), {.losses = {{2, 1}, {4, 0}}});
  for (const int left : {2, 3}) {
    const Status& status = ended.statuses[static_cast<size_t>(left)];
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_EQ(ended.summary.restarts, 2);
  EXPECT_EQ(ended.summary.examples, 1500 * epochs);
}

/// Ranks of one worker show no other order of threads than those of two: sanitizers see the latter.
std::vector<Pace> Paces() {
  const char* const shuffled =
      "dist { mode: SPLIT servers: 1 } dataset { class_name: \"InMemoryDataset\" global_shuffle: true }";
  const char* const in_memory =
      "dist { update: ASYNC } thread_num: 2 dataset { class_name: \"InMemoryDataset\" local_shuffle: true }";
  std::vector<Pace> paces = {{"AsyncTwoThreads", "dist {} thread_num: 2"},
                             {"Bf16", "dist { update: SSP staleness: 2 wire: BF16 } thread_num: 2"},
                             {"GeoBf16", "dist { update: GEO geo_steps: 1 wire: BF16 } thread_num: 2"},
                             {"SplitGeo", "dist { update: GEO geo_steps: 5 mode: SPLIT servers: 1 } thread_num: 2"},
                             {"SplitShuffled", shuffled},
                             {"InMemory", in_memory}};
  if (kIsSanitized) return paces;
  const std::vector<Pace> more = {
      {"Async", "dist { update: ASYNC }"},
      {"Ssp", "dist { update: SSP staleness: 0 }"},
      {"Geo", "dist { update: GEO geo_steps: 4 }"},
      {"Split", "dist { mode: SPLIT servers: 1 wire: BF16 }"},
      {"SplitInMemory", "dist { mode: SPLIT servers: 1 } dataset { class_name: \"InMemoryDataset\" }"}};
  paces.insert(paces.end(), more.begin(), more.end());
  return paces;
}

INSTANTIATE_TEST_SUITE_P(Ranks, PacedRanksTest, testing::ValuesIn(Paces()),
                         [](const auto& pace) { return std::string(pace.param.name); });

TEST_F(RanksTest, RanksThatServeHaveAllRowsAndTrainNothing) {
  const Ended ended = RunRanks(small_.DeepJob("dist { mode: SPLIT servers: 2 } epochs: 2"), 5, Folder("split"));
  for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(ended.summary.examples, 3000);
  EXPECT_EQ(ended.summary.servers, 2);
  EXPECT_EQ(ended.summary.workers, 3);
  const Ended none = RunRanks(small_.DeepJob("dist { mode: SPLIT servers: 3 }"), 3, Folder("none"));
  for (const Status& status : none.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("dist.servers: 3 of 3 ranks serve, and none trains"));
  }
}

TEST_F(RanksTest, AStoppedRunAtItsOwnPaceGoesOnWithAnotherNumberOfRanks) {
  const std::string job = small_.DeepJob("dist { update: ASYNC } epochs: 4 checkpoint { every_steps: 40 }");
  const Ended cut = RunRanks(job, 3, Folder("cut"), {.stop_after = 6});
  ASSERT_TRUE(cut.statuses[0].ok()) << cut.statuses[0].ToString();
  EXPECT_TRUE(cut.summary.interrupted);
  const Ended last = RunRanks(job, 2, Folder("cut"), {.resume = "auto"});
  for (const Status& status : last.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(last.summary.examples, 6000);
}

TEST_F(RanksTest, RowsInMemoryThatAreTrainedInPartAreSharedOutAmongOtherRanks) {
  // An epoch is long, so that a stop comes within it.
  const int lines = kIsSanitized ? 10000 : 20000;
  const SmallJob large(lines, 6);
  // With more ranks than there were some have no rows, to shuffle either.
  for (const auto& [ranks, rows] : {std::pair{2, kInMemory}, {5, kInMemory}, {5, kShuffled}}) {
    const std::string job = large.DeepJob(
        "dist { update: ASYNC } thread_num: 2 epochs: 2 checkpoint { every_steps: " + kRareSteps + " } " + rows);
    const std::string name = "cut_" + std::to_string(ranks) + (rows == kShuffled ? "_shuffled" : "");
    SCOPED_TRACE(name);
    const Ended cut = RunRanks(job, 3, Folder(name), {.stop_after = 2});
    ASSERT_TRUE(cut.statuses[0].ok()) << cut.statuses[0].ToString();
    ASSERT_TRUE(cut.summary.interrupted);
    const Ended last = RunRanks(job, ranks, Folder(name), {.resume = "auto"});
    for (const Status& status : last.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(last.summary.examples, 2 * lines);
  }
}

TEST_F(RanksTest, ADayInMemoryThatIsTrainedInPartIsSharedOutAmongOtherRanks) {
  const SmallJob large(3000, 4);
  const std::vector<std::string> files = large.files();
  const std::string days = "incremental { pass { name: \"monday\" filelist: \"" + files[0] + "\" filelist: \"" +
                           files[1] + "\" } pass { name: \"tuesday\" filelist: \"" + files[2] + "\" filelist: \"" +
                           files[3] + "\" } } checkpoint { every_steps: 8 keep: 100 }";
  const std::vector<std::string> by_id = {"model.table[0].key=ID"};
  struct Case {
    int before;
    int after;
    std::string job;
  };
  const std::string async = "dist { update: ASYNC } ";
  std::vector<Case> cases = {{1, 2, async + kInMemory}, {3, 1, async + kInMemory}, {2, 3, async + kShuffled}};
  // Streams, eight here and four below, of a day of two files.
  cases.push_back({2, 2, std::string(kSync) + kShuffled});
  if (!kIsSanitized) cases.push_back({4, 4, async + kShuffled});
  // A QueueDataset has nothing in memory: any number of ranks takes its files.
  cases.push_back({2, 3, async});
  for (const auto& [before, after, job_text] : cases) {
    const std::string job = large.CtrJob(job_text + days);
    const std::string name =
        std::to_string(before) + "_" + std::to_string(after) + "_" + std::to_string(job_text.size());
    SCOPED_TRACE(name + " " + job_text);
    const Ended whole = RunRanks(job, before, Folder(name), {.overrides = by_id});
    ASSERT_TRUE(whole.statuses[0].ok()) << whole.statuses[0].ToString();
    EXPECT_EQ(CountsIn(Folder(name) + "/model/tables/t"), large.Counts(1));
    std::set<std::string> checkpoints;
    for (const auto& entry : std::filesystem::directory_iterator(Folder(name) + "/checkpoints")) {
      if (entry.path().filename().string().starts_with("step-")) checkpoints.insert(entry.path().string());
    }
    ASSERT_GE(checkpoints.size(), 3U);
    EXPECT_THAT(ReadFile(*checkpoints.begin() + "/MANIFEST").value(), Not(HasSubstr("ledger: \"\""))) << "within a day";
    const Ended last = RunRanks(job, after, Folder(name + "_on"), {.resume = *checkpoints.begin(), .overrides = by_id});
    for (const Status& status : last.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(last.summary.examples, 3000);
    EXPECT_EQ(CountsIn(Folder(name + "_on") + "/model/tables/t"), large.Counts(1));
  }
}

TEST_F(RanksTest, RanksThatAreLeftTrainEachLineOfADayInMemoryOnce) {
  const SmallJob large(3000, 4);
  const std::vector<std::string> files = large.files();
  const std::string job = large.CtrJob(
      "dist { update: ASYNC } " + std::string(kInMemory) + "incremental { pass { name: \"monday\" filelist: \"" +
      files[0] + "\" filelist: \"" + files[1] + "\" filelist: \"" + files[2] +
      "\" } pass { name: \"tuesday\" filelist: \"" + files[3] + "\" } } checkpoint { every_steps: 8 }");
  const Ended ended =
      RunRanks(job, 4, Folder("lost"),
               {.overrides = {"model.table[0].key=ID", "fetch_config.print_period=4"}, .losses = {{3, 1}}});
  for (const size_t r : {0, 2, 3}) ASSERT_TRUE(ended.statuses[r].ok()) << ended.statuses[r].ToString();
  EXPECT_EQ(ended.summary.restarts, 1);
  EXPECT_EQ(ended.summary.examples, 3000);
  EXPECT_EQ(CountsIn(Folder("lost") + "/model/tables/t"), large.Counts(1));
}

TEST_F(RanksTest, DaysAreTrainedByRanksAtTheirOwnPace) {
  std::string days;
  int64_t lines = 0;
  for (int i = 0; i < 8; ++i) {
    std::ifstream file(small_.files()[static_cast<size_t>(i)]);
    lines += std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }
  for (int i = 0; i < 4; ++i) days += Day(std::to_string(i), 2 * i, 2 * i + 2);
  const std::string job = small_.DeepJob("dist { update: ASYNC } incremental { " + days + "save_interval: 1 }");
  const Ended ended = RunRanks(job, 3, Folder("days"));
  for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(ended.summary.examples, lines);
}

TEST_F(RanksTest, ABadLineOfARankAtItsOwnPaceEndsAllWithItsPlace) {
  std::ofstream(small_.files()[10], std::ios::app) << "1 no_number\n";
  const std::string job = small_.DeepJob("dist { update: ASYNC } epochs: 2 checkpoint { every_steps: 1000 }");
  const Ended ended = RunRanks(job, 4, Folder("bad"));
  for (const Status& status : ended.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kBadData) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("part-10:"));
    EXPECT_THAT(status.message(), HasSubstr("--resume=auto goes on from step "));
  }
}

TEST_F(RanksTest, LinesThatRanksAtTheirOwnPaceSkipAreCountedOnceAlsoBehindAStop) {
  for (const int part : {1, 6, 10}) std::ofstream(small_.files()[static_cast<size_t>(part)], std::ios::app) << "bad\n";
  const std::string job = small_.DeepJob("dist { update: ASYNC } epochs: 1 checkpoint { every_steps: 40 } ");
  const std::vector<std::string> skip = {"data_desc.bad_lines.action=SKIP"};
  const Ended cut = RunRanks(job, 4, Folder("skipped"), {.overrides = skip, .stop_after = 2});
  ASSERT_TRUE(cut.statuses[0].ok()) << cut.statuses[0].ToString();
  const Ended last = RunRanks(job, 2, Folder("skipped"), {.resume = "auto", .overrides = skip});
  ASSERT_TRUE(last.statuses[0].ok()) << last.statuses[0].ToString();
  EXPECT_EQ(last.summary.examples, 1500);
}

TEST_F(RanksTest, WhatOneRankAtItsOwnPaceThrowsEndsAll) {
  const std::string job = small_.DeepJob("dist { update: ASYNC }");
  const Ended ended =
      RunRanks(job, 3, Folder("thrown"), {.at_print = [] { throw std::runtime_error("thrown in a batch"); }});
  for (const Status& status : ended.statuses) EXPECT_THAT(status.message(), HasSubstr("thrown in a batch"));
}

// Evaluations of all ranks.

class EvaluationOfRanksTest : public RanksTest, public testing::WithParamInterface<Pace> {
 protected:
  /// Trained on the first four files, evaluated on the others.
  std::string Job(const std::string& more = "") const {
    std::string text = std::string(GetParam().job) + " epochs: 2 " + more + " eval { every_epochs: 0 ";
    for (size_t i = 4; i < 11; ++i) text += "filelist: \"" + small_.files()[i] + "\" ";
    return small_.DeepJob(text + "}");
  }
  std::vector<std::string> Overrides(const std::string& more) const {
    std::string list;
    for (size_t i = 0; i < 4; ++i) list += (i == 0 ? "\"" : ", \"") + small_.files()[i] + "\"";
    std::vector<std::string> overrides = {"filelist=[" + list + "]"};
    if (!more.empty()) overrides.push_back(more);
    return overrides;
  }
  bool IsInStep() const { return std::string(GetParam().job).find("update: SYNC") != std::string::npos; }
};

TEST_P(EvaluationOfRanksTest, AnyNumberOfRanksComesToTheMetricsOfOne) {
  const std::string job = Job();
  const Ended trained = RunRanks(job, 3, Folder("run"), {.overrides = Overrides("")});
  for (const Status& status : trained.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  // A run that is over measures its model once more.
  std::optional<EvalReport> alone;
  const std::string lines = ReadFile(Folder("run") + "/metrics.jsonl").value();
  for (const int ranks : Numbers({1, 2, 3, 5})) {
    SCOPED_TRACE(ranks);
    const Ended again = RunRanks(job, ranks, Folder("run"), {.resume = "auto", .overrides = Overrides("")});
    for (const Status& status : again.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(again.summary.run_batches, 0);
    EXPECT_EQ(ReadFile(Folder("run") + "/metrics.jsonl").value(), lines);
    const EvalReport& report = again.summary.eval;
    EXPECT_EQ(report.examples, 955);
    EXPECT_EQ(report.data.files, 7);
    EXPECT_EQ(report.data.lines, 955);
    if (!alone.has_value()) alone = report;
    ASSERT_EQ(report.metrics.size(), alone->metrics.size());
    for (size_t i = 0; i < report.metrics.size(); ++i) {
      const auto& [name, value] = report.metrics[i];
      // Sums of counts and sorted rows are the same in any order.
      const bool is_exact = IsInStep() || name == "auc" || name == "gauc";
      EXPECT_NEAR(value, alone->metrics[i].second, is_exact ? 0 : 1e-9) << name;
    }
    EXPECT_NEAR(report.loss, alone->loss, IsInStep() ? 0 : 1e-6);
  }
}

TEST_P(EvaluationOfRanksTest, ABadLineEndsAllRanksWithItsPlace) {
  std::ofstream(small_.files()[8], std::ios::app) << "1 no_number\n";
  const Ended ended = RunRanks(Job("checkpoint { every_steps: 1000 }"), 3, Folder("bad"), {.overrides = Overrides("")});
  for (const Status& status : ended.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kBadData) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("part-8:138:"));
    EXPECT_THAT(status.message(), HasSubstr("--resume=auto goes on from step "));
  }
}

TEST_P(EvaluationOfRanksTest, AStopOfAnyRankEndsItOnAll) {
  const std::string job = Job("checkpoint { every_steps: 1000 }");
  for (const int stopped : {0, 1}) {
    SCOPED_TRACE(stopped);
    const std::string mark = Folder("mark_" + std::to_string(stopped));
    const std::string wait = WaitAtTheEndOf(small_.files()[9], mark);
    const std::string name = "cut_" + std::to_string(stopped);
    const Ended cut =
        RunRanks(job, 3, Folder(name), {.overrides = Overrides(wait), .stopped = stopped, .stop_when = mark});
    for (const Status& status : cut.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(cut.summary.interrupted);
    EXPECT_TRUE(cut.summary.eval.metrics.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EvaluationOfRanksTest,
                         testing::Values(Pace{"Sync", kSync}, Pace{"Async", "dist { update: ASYNC } thread_num: 2"},
                                         Pace{"Ssp", "dist { update: SSP staleness: 1 wire: BF16 }"},
                                         Pace{"Geo", "dist { update: GEO geo_steps: 4 wire: BF16 } thread_num: 2"},
                                         Pace{"Split", "dist { mode: SPLIT servers: 1 wire: BF16 }"},
                                         Pace{"SyncInMemory",
                                              "dist { update: SYNC micro_batches: 8 } dataset { class_name: "
                                              "\"InMemoryDataset\" local_shuffle: true }"},
                                         Pace{"InMemory",
                                              "dist { update: ASYNC } thread_num: 2 dataset { class_name: "
                                              "\"InMemoryDataset\" local_shuffle: true }"}),
                         [](const auto& pace) { return std::string(pace.param.name); });

TEST_F(RanksTest, BadLinesOfAnEvaluationStandOnceInTheFilesOfRanks) {
  std::ofstream(small_.files()[5], std::ios::app) << "1 x\n";
  for (const char* dist : {kSync, "dist { update: ASYNC } "}) {
    const std::string out = Folder(std::string("quarantine_") + dist[15]);
    std::string text = std::string(dist) + "epochs: 2 eval { ";
    for (size_t i = 0; i < 11; ++i) text += "filelist: \"" + small_.files()[i] + "\" ";
    const std::string job = small_.DeepJob(text + "}");
    const Ended ended = RunRanks(
        job, 2, out,
        {.overrides = {"data_desc.bad_lines={ action: QUARANTINE }", "filelist=[\"" + small_.files()[0] + "\"]"}});
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(ended.summary.eval.examples, 1500);
    EXPECT_EQ(ended.summary.eval.data.bad_lines, 1);
    std::vector<std::string> lines;
    for (const char* name : {"/bad_lines.txt", "/bad_lines.rank-1.txt"}) {
      std::ifstream in(out + name);
      for (std::string line; std::getline(in, line);) lines.push_back(name + line.substr(line.rfind('\t')));
    }
    ASSERT_EQ(lines.size(), 1U);
    // In step file 5 is of rank 1, whoever is faster.
    if (dist == kSync) {
      EXPECT_EQ(lines[0], "/bad_lines.rank-1.txt\t1 x");
    }
  }
}

TEST_F(RanksTest, LinesOfAnExampleThatLieInFilesOfTwoRanksMergeInAnEvaluationAsInOneProcess) {
  // The slots of an example lie in two lines, of two files.
  std::vector<std::ofstream> halves;
  std::string list;
  std::string eval;
  for (size_t i = 0; i < 4; ++i) {
    const std::string name = Folder("half-" + std::to_string(i));
    halves.emplace_back(name);
    list += (list.empty() ? "\"" : ", \"") + name + "\"";
    eval += "filelist: \"" + name + "\" ";
  }
  for (int i = 0; i < 200; ++i) {
    const std::string name = "1 n" + std::to_string(i);
    const std::string id = std::to_string(i % 50 + 1);
    halves[static_cast<size_t>(i) % 4] << name << " 1 " << i % 2 << " 1 1 1 " << i + 1 << " 1 " << id << " 0\n";
    halves[static_cast<size_t>(i + 1) % 4] << name << " 1 0 1 0 0 0 2 " << id << " 7\n";
  }
  halves.clear();
  for (const char* dist : {kSync, "dist { update: ASYNC } "}) {
    const std::string job = small_.DeepJob(
        dist +
        ("dataset { class_name: \"InMemoryDataset\" merge_by_lineid: true global_shuffle: true } eval { " + eval) +
        "}");
    for (const int ranks : {1, 3}) {
      const Ended ended = RunRanks(
          job, ranks, Folder("merged"),
          {.overrides = {"filelist=[" + list + "]", "data_desc.parse_ins_id=true", "data_desc.empty_slot=ALLOW"}});
      for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(ended.summary.examples, 200) << ranks << " ranks";
      EXPECT_EQ(ended.summary.eval.examples, 200) << ranks << " ranks";
      EXPECT_EQ(ended.summary.eval.data.lines, 400) << ranks << " ranks";
    }
  }
}

/// How often `part` stands in `text`.
int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(RanksTest, ATraceHasEachBatchOfAllRanksOnceAndEachRankAsAProcess) {
  const std::string output = "output { trace: true trace_first_batch: 8 trace_batches: 16 }";
  const Ended ended = RunRanks(small_.DeepJob(std::string(kSync) + output), 2, Folder("traced"));
  for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  const std::string trace = ReadFile(Folder("traced") + "/trace.json").value();
  for (int step = 8; step < 24; ++step) {
    EXPECT_EQ(CountOf(trace, "\"args\":{\"step\":" + std::to_string(step) + ","), 1) << step;
  }
  EXPECT_EQ(CountOf(trace, "\"name\":\"batch\""), 16);
  for (const char* name : {"rank 0 (", "rank 1 (", "steps of ranks", "stream 0 reader 0", "stream 7 reader 0"}) {
    EXPECT_THAT(trace, HasSubstr("\"args\":{\"name\":\"" + std::string(name))) << name;
  }
  for (const char* span : {"wait for ranks", "exchange"}) EXPECT_GT(CountOf(trace, span), 0) << span;
}

TEST_F(RanksTest, ATraceOfRanksAtTheirOwnPaceLeavesOutThoseThatServe) {
  const std::string output = "output { trace: true trace_first_batch: 0 trace_batches: 1000 }";
  const Ended ended = RunRanks(small_.DeepJob("dist { mode: SPLIT servers: 1 } " + output), 3, Folder("traced"));
  for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  const std::string trace = ReadFile(Folder("traced") + "/trace.json").value();
  EXPECT_EQ(CountOf(trace, "\"name\":\"batch\""), ended.summary.batches);
  EXPECT_THAT(trace, HasSubstr("rank 1 ("));
  EXPECT_THAT(trace, testing::Not(HasSubstr("rank 2 (")));
}

// What is made of the whole model at the end.

TEST_F(RanksTest, AnExportHoldsTheRowsOfAllRanks) {
  const std::string job = small_.DeepJob(std::string(kSync) +
                                         "output { export { format: PADDLE vocabulary: 1000 } "
                                         "export { format: ONNX vocabulary: 1000 } }");
  for (const int ranks : {1, 3}) {
    const Ended ended = RunRanks(job, ranks, Folder("exported_" + std::to_string(ranks)));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  }
  for (const char* format : {"/paddle", "/onnx"}) {
    const std::vector<std::string> alone = FolderContent(Folder("exported_1") + format);
    EXPECT_FALSE(alone.empty());
    EXPECT_EQ(FolderContent(Folder("exported_3") + format), alone) << format;
  }
}

TEST_F(RanksTest, AnIdBeyondTheVocabularyOfAnExportIsFoundInTheFirstBatchesOfAnyRank) {
  // Part 7 is of rank 2 of 3.
  std::ofstream(small_.files()[7]) << "1 1 1 1 1 1 1 5 2 6 99999\n";
  const std::string job = small_.DeepJob(std::string(kSync) + "output { export { format: PADDLE vocabulary: 1000 } }");
  const Ended ended = RunRanks(job, 3, Folder("exported"));
  EXPECT_THAT(ended.statuses[0].message(), AllOf(HasSubstr("rank 2 ("), HasSubstr("is not below vocabulary 1000")));
}

TEST_F(RanksTest, TheImportanceOfFeaturesIsThatOfTheRowsOfAllRanks) {
  const std::string job =
      small_.DeepJob(std::string(kSync) + "epochs: 2 eval { filelist: \"" + small_.files()[0] + "\" filelist: \"" +
                     small_.files()[1] + "\" } feature_importance { slots: \"A\" slots: \"B\" }");
  std::string alone;
  for (const int ranks : {1, 3}) {
    const std::string out = Folder("importance_" + std::to_string(ranks));
    const Ended ended = RunRanks(job, ranks, out);
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    std::string json = ReadFile(out + "/feature_importance.json").value();
    const size_t at = json.find("\"seconds\"");
    json.erase(at, json.find('\n', at) - at);
    if (ranks == 1) alone = json;
    EXPECT_EQ(json, alone);
  }
}

/// Lines of the files of a dump, by file name.
std::map<std::string, std::vector<std::string>> DumpIn(const std::string& folder) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::vector<std::string>& of_file = lines[entry.path().filename().string()];
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) of_file.push_back(line);
  }
  return lines;
}

TEST_F(RanksTest, EachRankDumpsItsExamplesIntoFilesOfItsOwn) {
  std::vector<std::string> alone;
  for (const char* dist : {kSync, "dist { update: ASYNC } ", "dist { mode: SPLIT servers: 1 } "}) {
    for (const int ranks : {1, 3}) {
      SCOPED_TRACE(std::string(dist) + std::to_string(ranks));
      const std::string folder = Folder(std::string("dump_") + dist[8] + dist[15] + std::to_string(ranks));
      const bool is_named = ranks == 3 && dist == kSync;
      const std::string job = small_.DeepJob(
          std::string(dist) + "dump_fields: \"A\" dump_fields: \"B\" dump_fields: \"y\" dump_file_num: 2 " +
          (is_named ? "user_define_dump_filename: \"day\" " : "") + "dump_fields_path: \"" + folder + "\"");
      const Ended ended = RunRanks(job, ranks, Folder("dumped"));
      for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
      std::vector<std::string> all;
      std::vector<std::string> names;
      for (const auto& [name, lines] : DumpIn(folder)) {
        names.push_back(name);
        all.insert(all.end(), lines.begin(), lines.end());
      }
      const bool has_server = ranks == 3 && dist != kSync && std::string(dist).find("SPLIT") != std::string::npos;
      EXPECT_EQ(names.size(), static_cast<size_t>(2 * (ranks - (has_server ? 1 : 0))));
      EXPECT_EQ(names.back(), is_named ? "part-day.rank-2-00001"
                                       : "part-00" + std::to_string(ranks - (has_server ? 2 : 1)) + "-00001");
      // In step the scores are the same bytes; otherwise each example stands there once all the same.
      if (dist != kSync) {
        for (std::string& line : all) line.resize(line.find("\ty:"));
      }
      std::sort(all.begin(), all.end());
      if (alone.empty()) alone = all;
      EXPECT_EQ(all.size(), 1500U);
      EXPECT_EQ(all, alone);
      if (dist != kSync || ranks == 1) continue;
      for (std::string& line : alone) line.resize(line.find("\ty:"));
      std::sort(alone.begin(), alone.end());
    }
  }
}

TEST_F(RanksTest, ADumpThatOneRankCannotWriteEndsAll) {
  const std::string folder = Folder("dumps");
  std::filesystem::create_directories(folder + "/part-001-00000");
  const std::string job =
      small_.DeepJob("dist { update: ASYNC } dump_fields: \"y\" dump_file_num: 1 dump_fields_path: \"" + folder + "\"");
  const Ended ended = RunRanks(job, 2, Folder("dumped"));
  for (const Status& status : ended.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kIo) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("cannot write the dump \"" + folder + "/part-001-00000\""));
  }
  EXPECT_THAT(ended.statuses[0].message(), HasSubstr("rank 1 ("));
}

TEST_F(RanksTest, ADumpOfRanksGoesThroughItsConverter) {
  for (const char* dist : {kSync, "dist { update: ASYNC } "}) {
    SCOPED_TRACE(dist);
    const std::string folder = Folder(std::string("converted_") + dist[15]);
    const std::string job = small_.DeepJob(std::string(dist) + "dump_fields: \"A\" dump_file_num: 1 dump_converter: " +
                                           "\"sed s/A:/converted:/\" dump_fields_path: \"" + folder + "\"");
    const Ended ended = RunRanks(job, 2, Folder("dumped"));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    size_t lines = 0;
    for (const auto& [name, of_file] : DumpIn(folder)) {
      lines += of_file.size();
      for (const std::string& line : of_file) EXPECT_EQ(line.rfind("\tconverted:", 0), 0U) << name << ": " << line;
    }
    EXPECT_EQ(lines, 1500U);
  }
}

TEST_F(RanksTest, AConverterThatTakesNothingKeepsNoRankFromAStop) {
  for (const char* dist : {kSync, "dist { update: ASYNC } "}) {
    SCOPED_TRACE(dist);
    // That of one rank takes nothing, and is stopped when its pipe and what waits for it are full.
    const std::string taken = Folder(std::string("taken_") + dist[15]);
    const std::string full = Folder(std::string("full_") + dist[15]);
    const std::string job = small_.DeepJob(
        std::string(dist) + "epochs: 200 dump_fields: \"A\" dump_fields: \"B\" dump_fields: \"y\" dump_file_num: 1 " +
        "dump_converter: \"mkdir " + taken + " && exec cat; sleep 2; touch " + full + "; exec sleep 3600\" " +
        "dump_fields_path: \"" + Folder("held") + "\"");
    RunOptions options;
    options.stop_when = full;
    options.stopped = -1;
    const Ended ended = RunRanks(job, 2, Folder("dumped"), options);
    for (const Status& status : ended.statuses) {
      EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
      EXPECT_THAT(status.message(), HasSubstr("did not end after the stop"));
    }
  }
}

TEST_F(RanksTest, RankZeroDumpsTheParametersOfEachStepOnce) {
  std::map<std::string, std::vector<std::string>> alone;
  for (const int ranks : {1, 2, 4}) {
    const std::string folder = Folder("parameters_" + std::to_string(ranks));
    const std::string job = small_.DeepJob(std::string(kSync) + "dump_param: \"y.b_0\" dump_file_num: 1 " +
                                           "dump_fields_path: \"" + folder + "\"");
    const Ended ended = RunRanks(job, ranks, Folder("dumped"));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
    const auto dump = DumpIn(folder);
    ASSERT_EQ(dump.size(), 1U);
    if (alone.empty()) alone = dump;
    EXPECT_EQ(dump, alone) << ranks << " ranks";
  }
  const std::vector<std::string>& lines = alone.at("part-000-00000");
  ASSERT_GT(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("(0,0,y.b_0)"));
  EXPECT_THAT(lines[1], HasSubstr("(0,8,y.b_0)"));
  EXPECT_NE(lines[1].substr(11), lines[2].substr(12));
}

TEST_F(RanksTest, RanksAtTheirOwnPaceDumpTheParametersOfRankZero) {
  const std::string folder = Folder("parameters");
  const std::string job = small_.DeepJob(
      "dist { update: ASYNC } dump_param: \"y.b_0\" dump_file_num: 1 "
      "dump_fields_path: \"" +
      folder + "\"");
  const Ended ended = RunRanks(job, 2, Folder("dumped"));
  for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
  const auto dump = DumpIn(folder);
  ASSERT_EQ(dump.size(), 1U);
  const std::vector<std::string>& lines = dump.at("part-000-00000");
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_THAT(lines[i], HasSubstr("(0," + std::to_string(i) + ",y.b_0)"));
  }
}

TEST_F(RanksTest, RanksInferEachLineOnceToTheScoresOfOneProcess) {
  const std::string out = Folder("trained");
  ASSERT_TRUE(RunRanks(small_.DeepJob("epochs: 2 dist { update: SYNC micro_batches: 8 }"), 1, out).statuses[0].ok());
  const std::vector<std::string> before = FolderContent(out + "/checkpoints");
  std::vector<std::string> alone;
  MetricValues metrics;
  for (const char* dist : {kSync, "dist { update: ASYNC } ", "dist { update: SSP staleness: 1 } ",
                           "dist { update: GEO geo_steps: 4 } ", "dist { mode: SPLIT servers: 1 } "}) {
    for (const int ranks : {1, 3}) {
      SCOPED_TRACE(std::string(dist) + std::to_string(ranks));
      const std::string folder = Folder(std::string("scores_") + dist[15] + dist[16] + std::to_string(ranks));
      const std::string job =
          small_.DeepJob(std::string(dist) + "epochs: 2 infer: true dump_fields: \"A\" dump_fields: \"B\" " +
                         "dump_fields: \"y\" dump_file_num: 1 dump_fields_path: \"" + folder + "\"");
      RunOptions options;
      options.resume = "auto";
      const Ended ended = RunRanks(job, ranks, out, options);
      for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(ended.summary.examples, 1500);
      std::vector<std::string> all;
      for (const auto& [name, lines] : DumpIn(folder)) all.insert(all.end(), lines.begin(), lines.end());
      std::sort(all.begin(), all.end());
      if (alone.empty()) {
        alone = all;
        metrics = ended.summary.metrics;
        ASSERT_FALSE(metrics.empty());
      }
      EXPECT_EQ(all.size(), 1500U);
      EXPECT_EQ(all, alone);
      ExpectNear(ended.summary.metrics, metrics);
    }
  }
  EXPECT_EQ(FolderContent(out + "/checkpoints"), before);
}

// Tables that count shows and clicks.

TEST_F(RanksTest, AnyNumberOfRanksCountsShowsAndClicksToTheSameBytes) {
  const std::string job = small_.CtrJob(std::string(kSync) + " epochs: 2 checkpoint { every_steps: 16 }");
  const std::vector<std::string> by_id = {"model.table[0].key=ID"};
  std::vector<std::string> model;
  for (const int ranks : Numbers({1, 2, 3, 8})) {
    const std::string name = "counted_" + std::to_string(ranks);
    const Ended ended = RunRanks(job, ranks, Folder(name), {.overrides = by_id});
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << ranks << " ranks: " << status.ToString();
    if (ranks == 1) model = Model(name);
    EXPECT_EQ(Model(name), model) << ranks << " ranks";
    EXPECT_EQ(CountsIn(Folder(name) + "/model/tables/t"), small_.Counts(2)) << ranks << " ranks";
  }
  // Stopped, and gone on with another number of ranks.
  const Ended cut = RunRanks(job, 3, Folder("cut"), {.overrides = by_id, .stop_after = 2, .stopped = 2});
  ASSERT_TRUE(cut.statuses[0].ok()) << cut.statuses[0].ToString();
  ASSERT_TRUE(cut.summary.interrupted);
  const Ended last = RunRanks(job, 2, Folder("cut"), {.resume = "auto", .overrides = by_id});
  ASSERT_TRUE(last.statuses[0].ok()) << last.statuses[0].ToString();
  EXPECT_EQ(Model("cut"), model);
}

// A step of one batch is a batch of one process, whose gradients are those of the sum as well.
TEST_F(RanksTest, AStepOfOneBatchUpdatesCountedRowsAsOneProcessDoes) {
  const std::string job = small_.CtrJob("epochs: 2 fuse: false");
  const Ended step = RunRanks(job, 1, Folder("step"), {.overrides = {"dist={update: SYNC micro_batches: 1}"}});
  ASSERT_TRUE(step.statuses[0].ok()) << step.statuses[0].ToString();
  RunOutput output;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nobody(std::fopen("/dev/null", "w"), std::fclose);
  output.terminal = nobody.get();
  output.fetched = [](const FetchLine&) { return Status::Ok(); };
  const auto session = JobSession::Create(CompileJob(job, Folder("alone"), {"update_mode=SERIAL"}), {});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  ASSERT_TRUE(RunJob(**session, "never", "last", {}, output).ok());
  EXPECT_EQ(Model("step"), Model("alone"));
}

TEST_F(RanksTest, DaysOfRanksShrinkAndSaveAsThoseOfOne) {
  std::string passes;
  for (int day = 0; day < 3; ++day) {
    passes += " pass { name: \"d" + std::to_string(day) + "\"";
    for (int file = 0; file < 3; ++file) {
      passes += " filelist: \"" + small_.files()[static_cast<size_t>(3 * day + file)] + "\"";
    }
    passes += " }";
  }
  const std::string job =
      small_.CtrJob(std::string(kSync) + "incremental {" + passes + " shrink: true save_mode: DELTA }\n");
  std::vector<std::string> models;
  for (const int ranks : Numbers({1, 2, 3})) {
    const std::string name = "days_" + std::to_string(ranks);
    const Ended ended = RunRanks(job, ranks, Folder(name));
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << ranks << " ranks: " << status.ToString();
    if (ranks == 1) models = FolderContent(Folder(name) + "/models");
    EXPECT_EQ(FolderContent(Folder(name) + "/models"), models) << ranks << " ranks";
  }
  EXPECT_LT(CountsIn(Folder("days_3") + "/models/d2/tables/t").size(),
            CountsIn(Folder("days_3") + "/model/tables/t").size());
}

TEST_F(RanksTest, RanksAtTheirOwnPaceLoseNoShowAndNoClick) {
  for (const char* dist : {"update: ASYNC", "update: ASYNC wire: BF16", "update: SSP staleness: 1"}) {
    const std::string job =
        small_.CtrJob("thread_num: 2 epochs: 3 checkpoint { every_steps: 40 } dist { " + std::string(dist) + " }\n");
    for (const int ranks : Numbers({1, 2, 4})) {
      SCOPED_TRACE(std::string(dist) + ", " + std::to_string(ranks) + " ranks");
      const std::vector<std::string> by_id = {"model.table[0].key=ID"};
      const std::string name = "counted_" + std::string(dist) + std::to_string(ranks);
      const Ended cut = RunRanks(job, ranks, Folder(name), {.overrides = by_id, .stop_after = 3});
      ASSERT_TRUE(cut.statuses[0].ok()) << cut.statuses[0].ToString();
      const Ended last = RunRanks(job, ranks % 3 + 1, Folder(name), {.resume = "auto", .overrides = by_id});
      ASSERT_TRUE(last.statuses[0].ok()) << last.statuses[0].ToString();
      EXPECT_EQ(last.summary.examples, 4500);
      EXPECT_EQ(CountsIn(Folder(name) + "/model/tables/t"), small_.Counts(3));
    }
  }
}

// A program that fleet wrote with CtrCommonAccessor and cvm.
TEST_F(RanksTest, AProgramOfFleetCountsOnRanksAsOnOne) {
  const std::string golden = SourceDir() + "/tests/golden/fleet/counted_";
  std::ofstream job(Folder("fleet.prototxt"));
  for (const std::string& file : small_.files()) job << "filelist: \"" << file << "\"\n";
  job << "epochs: 2\n"
      << kSync << "program { main: \"" << golden << "main.prototxt\" startup: \"" << golden << R"(startup.prototxt" }
model {
  table { name: "emb" accessor { embedx_dim: 4 embedx_threshold: 1 } }
  optimizer { sgd { lr: 0.1 } }
}
data_desc { batch_size: 32 multi_slot_desc {
  slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
  slots { name: "ones" type: "float" is_used: false is_dense: true shape: [-1, 1] }
  slots { name: "uid" type: "uint64" is_used: false }
  slots { name: "A" type: "uint64" is_used: false }
  slots { name: "ids" type: "uint64" is_used: true }
} }
)";
  job.close();
  std::vector<std::string> saved;
  for (const int ranks : {1, 3}) {
    const std::string folder = Folder("fleet_" + std::to_string(ranks));
    const Ended ended =
        RunRanks(Folder("fleet.prototxt"), ranks, folder, {.overrides = {"program.save_dir=\"" + folder + "/saved\""}});
    for (const Status& status : ended.statuses) ASSERT_TRUE(status.ok()) << ranks << " ranks: " << status.ToString();
    if (ranks == 1) saved = FolderContent(folder + "/saved");
    EXPECT_EQ(FolderContent(folder + "/saved"), saved) << ranks << " ranks";
    float shows = 0;
    for (const auto& [id, counts] : CountsIn(folder + "/saved/tables/emb")) shows += counts.first;
    EXPECT_EQ(shows, 2 * 2 * 1500);
  }
  // What servers would have goes out of three ranks and into two, with counts that go on.
  const std::string servers = Folder("servers");
  const auto run = [&](int ranks, const std::string& name, const std::string& set) {
    const std::string folder = Folder(name);
    const Ended ended = RunRanks(Folder("fleet.prototxt"), ranks, folder,
                                 {.overrides = {"program.save_dir=\"" + folder + "/saved\"", set}});
    for (const Status& status : ended.statuses) EXPECT_TRUE(status.ok()) << ranks << " ranks: " << status.ToString();
    return CountsIn(folder + "/saved/tables/emb");
  };
  auto expected = run(3, "giving", "program.save_server_dir=\"" + servers + "\"");
  for (auto& [id, counts] : expected) counts = {2 * counts.first, 2 * counts.second};
  const std::string start = "program.server_dir=\"" + servers + "\"";
  EXPECT_EQ(run(2, "taking", start), expected);
  EXPECT_EQ(run(1, "taking_one", start), expected);
  EXPECT_EQ(FolderContent(Folder("taking") + "/saved"), FolderContent(Folder("taking_one") + "/saved"));
}

}  // namespace
}  // namespace millrace
