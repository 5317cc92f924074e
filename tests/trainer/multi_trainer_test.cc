#include "trainer/multi_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "e2e/small_job.h"
#include "sanitized.h"
#include "threads_now.h"
#include "trainer/builtin_trainers.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kBatch = 32;

/// Notes what a run reports, and the most threads at a print.
class Notes final : public RunReporter {
 public:
  void OnTick(const RunProgress&) override {}
  Status OnLoad(const PassStats&) override { return Status::Ok(); }
  Status OnFetch(const FetchLine& line) override {
    ++fetches;
    stop_at_fetch.request_stop();
    lines.push_back(line);
    most_threads = std::max(most_threads, ThreadsNow());
    return failure;
  }
  Status OnPoint(const FetchLine& line) override {
    points.push_back(line);
    return Status::Ok();
  }
  Status OnEval(const EvalReport& report) override {
    eval_steps.push_back(report.step);
    return Status::Ok();
  }
  Status OnPass(const PassReport& report) override {
    passes.push_back(report);
    return Status::Ok();
  }

  std::stop_source stop_at_fetch{std::nostopstate};
  std::atomic<int> fetches{0};  ///< lines so far, for other threads
  std::vector<FetchLine> lines;
  std::vector<FetchLine> points;
  std::vector<int64_t> eval_steps;
  std::vector<PassReport> passes;
  Status failure;
  int most_threads = 0;
};

class SavedSteps final : public Checkpointer {
 public:
  double SecondsToSave() override { return seconds_to_save; }
  Status Save(const RunState& state, const CheckpointReason& reason, const std::function<Status()>& check) override {
    MR_TRY(check());
    if (gives_up.stop_possible()) {
      std::exchange(gives_up, std::stop_source(std::nostopstate)).request_stop();
      return Cancelled("a stop");
    }
    steps.push_back(state.step);
    for (const GroupSample& sample : state.metric_totals.samples) grouped_rows.push_back(sample.rows().size());
    if (reason.is_best) best_step = state.step;
    if (reason.is_between) ++between;
    stop_while_saving.request_stop();
    return Status::Ok();
  }
  std::stop_source stop_while_saving{std::nostopstate};  ///< is asked in the middle of each save
  std::stop_source gives_up{std::nostopstate};           ///< is asked in the middle of the first save, which ends then
  std::vector<int64_t> steps;
  std::vector<size_t> grouped_rows;  ///< rows of GAUC in each save
  int64_t best_step = -1;
  double seconds_to_save = 0;
  int between = 0;  ///< saves that nobody asked for
};

class MultiTrainerTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kWorkers = 3;
  static constexpr int kReaders = 2;

  std::string JobOf(const std::string& text) const {
    return small_.DeepJob("dataset { class_name: \"" + std::string(GetParam()) + "\" } " + text);
  }
  std::vector<std::string> Threads() const {
    return {"thread_num=" + std::to_string(kWorkers), "data_desc.thread_num=" + std::to_string(kReaders)};
  }
  Result<RunReport> Run(JobSession& job, std::stop_token stop = {}) {
    MR_TRY(job.InitParameters());
    MR_ASSIGN(const std::unique_ptr<Trainer> trainer, CreateTrainer(job, {&saved_, &notes_, nullptr, {}}));
    return trainer->Run(std::move(stop));
  }

  const SmallJob small_{kBatch * 60, 3};
  Notes notes_;
  SavedSteps saved_;
};

TEST_P(MultiTrainerTest, OwnsItsThreadsAndEndsThem) {
  // Worker 0 prints, and of a few batches a busy machine may leave it none.
  const std::string epochs = kIsSanitized ? "epochs: 10" : "epochs: 100";
  std::vector<std::string> overrides = Threads();
  overrides.emplace_back("fetch_config.print_period=1");
  const std::unique_ptr<JobSession> job =
      MakeJob(JobOf(epochs + " eval { filelist: \"" + small_.files()[0] + "\" }"), "", overrides);
  const int before = ThreadsNow();
  const Result<RunReport> report = Run(*job);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(ThreadsOnce(before), before);
  ASSERT_FALSE(notes_.lines.empty());
  EXPECT_GT(notes_.most_threads, before);
  EXPECT_LE(notes_.most_threads, before + kWorkers + kReaders);
}

TEST_P(MultiTrainerTest, ABadLineEndsThePassForAllWithItsPlaceAndNoThreadStays) {
  std::ofstream(small_.files()[1], std::ios::app) << "1 0 1 1 1 5 1\n";
  const std::unique_ptr<JobSession> job = MakeJob(JobOf("epochs: 2"), "", Threads());
  const int before = ThreadsNow();
  const Result<RunReport> report = Run(*job);
  EXPECT_EQ(report.status().code(), StatusCode::kBadData);
  EXPECT_THAT(report.status().message(), HasSubstr(small_.files()[1] + ":641:"));
  EXPECT_EQ(ThreadsOnce(before), before);
  // Of the 20 batches before it in its file, the channel and the workers hold nine at most; the rest is trained, and
  // kept. Into memory the file is not loaded.
  const bool streams = GetParam() == std::string("QueueDataset");
  EXPECT_EQ(saved_.steps.size(), streams ? 1U : 0U);
  for (const int64_t step : saved_.steps) EXPECT_GE(step, 11);
  EXPECT_EQ(report.status().message().find("what was trained before is kept") != std::string::npos, streams);
}

TEST_P(MultiTrainerTest, AFailureInAWorkerEndsTheOthersAndNoThreadStays) {
  const std::unique_ptr<JobSession> job = MakeJob(JobOf("epochs: 1000"), "", Threads());
  notes_.failure = IoError("the disk is full");
  const int before = ThreadsNow();
  const Result<RunReport> report = Run(*job);
  EXPECT_EQ(report.status().code(), StatusCode::kIo);
  EXPECT_THAT(report.status().message(), HasSubstr("the disk is full"));
  EXPECT_EQ(notes_.lines.size(), 1U);
  EXPECT_THAT(report.status().message(), testing::Not(HasSubstr("is kept"))) << "what a failed batch left was saved";
  EXPECT_LT(notes_.passes.size(), 1000U);
  EXPECT_EQ(ThreadsOnce(before), before);
}

TEST_P(MultiTrainerTest, AStopRequestEndsItAtABatchWithACheckpoint) {
  const std::unique_ptr<JobSession> job = MakeJob(JobOf("epochs: 1000000"), "", Threads());
  const int before = ThreadsNow();
  std::stop_source stop;
  Result<RunReport> report = RunReport{};
  {
    std::jthread runner([&] { report = Run(*job, stop.get_token()); });
    while (notes_.fetches == 0) std::this_thread::yield();
    stop.request_stop();
  }
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_TRUE(report->interrupted);
  ASSERT_FALSE(saved_.steps.empty());
  EXPECT_EQ(saved_.steps.back(), report->state.step);
  EXPECT_EQ(ThreadsOnce(before), before);
}

TEST_P(MultiTrainerTest, EvaluatesAndSavesWhenTheJobSays) {
  const std::unique_ptr<JobSession> job =
      MakeJob(JobOf("update_mode: SERIAL epochs: 2 checkpoint { every_steps: 25 every_epochs: 0 } "
                    "eval { filelist: \"" +
                    small_.files()[0] + "\" every_steps: 40 every_epochs: 1 }"),
              "");
  const Result<RunReport> report = Run(*job);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->state.step, 120);
  EXPECT_THAT(notes_.eval_steps, ElementsAre(40, 60, 80, 120));
  EXPECT_THAT(saved_.steps, ElementsAre(25, 50, 75, 100));
}

TEST_P(MultiTrainerTest, SaysOfEveryPassWhatItTrained) {
  const std::unique_ptr<JobSession> job = MakeJob(JobOf("epochs: 2"), "", Threads());
  const Result<RunReport> report = Run(*job);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  ASSERT_EQ(notes_.passes.size(), 2U);
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    const PassReport& pass = notes_.passes[epoch];
    EXPECT_EQ(pass.epoch, static_cast<int64_t>(epoch));
    EXPECT_EQ(pass.examples, small_.lines());
    EXPECT_EQ(pass.batches, 60);
    EXPECT_GT(pass.run_seconds, 0);
  }
  EXPECT_EQ(report->state.examples, 2 * small_.lines());
}

TEST_P(MultiTrainerTest, AWindowOfAMetricIsWhatCameSinceTheLastPrint) {
  const std::unique_ptr<JobSession> job =
      MakeJob(JobOf("update_mode: SERIAL"), "",
              {"fetch_config={fetch_var_names: \"batch_gauc\" fetch_var_names: \"gauc\" print_period: 60}"});
  ASSERT_TRUE(Run(*job).ok());
  ASSERT_EQ(notes_.lines.size(), 1U);
  const std::vector<FetchLine::Value>& values = notes_.lines[0].values;
  EXPECT_EQ(values[0].values, values[1].values) << "one window that is the whole epoch";
  EXPECT_EQ(notes_.passes[0].metrics.back().first, "gauc");
  EXPECT_EQ(notes_.passes[0].metrics.back().second, values[0].values[0]);
}

TEST_P(MultiTrainerTest, PrintsOfGaucLeaveItsValuesAsTheyAre) {
  std::vector<double> last;
  for (const char* fetched : {"\"auc\"", "\"gauc\"", "\"gauc\", \"batch_auc\"", "\"batch_gauc\", \"gauc\""}) {
    notes_.lines.clear();
    notes_.passes.clear();
    const std::unique_ptr<JobSession> job =
        MakeJob(JobOf("update_mode: SERIAL epochs: 2"), "",
                {"fetch_config={fetch_var_names: [" + std::string(fetched) + "] print_period: 20}"});
    ASSERT_TRUE(Run(*job).ok());
    ASSERT_EQ(notes_.lines.size(), 6U);
    ASSERT_EQ(notes_.passes.size(), 2U);
    if (last.empty()) {
      for (const PassReport& pass : notes_.passes) last.push_back(pass.metrics.back().second);
    }
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      EXPECT_EQ(notes_.passes[epoch].metrics.back().second, last[epoch]) << fetched;
      for (const FetchLine::Value& value : notes_.lines[3 * epoch + 2].values) {
        if (value.name == "gauc") {
          EXPECT_EQ(value.values[0], last[epoch]) << fetched;
        }
      }
    }
  }
}

TEST_P(MultiTrainerTest, PausesLeaveEveryRowOfGaucToPrintsSavesAndTheEpoch) {
  const auto text_of_lines = [this] {
    std::string text;
    for (const FetchLine& line : notes_.lines) {
      for (const FetchLine::Value& value : line.values) {
        text += std::to_string(line.step) + " " + value.name + testing::PrintToString(value.values) + "\n";
      }
    }
    return text;
  };
  for (const char* fetched :
       {"\"auc\"", "\"gauc\"", "\"batch_auc\", \"gauc\"", "\"batch_gauc\"", "\"batch_gauc\", \"gauc\""}) {
    std::vector<std::string> printed;
    std::vector<double> of_epochs;
    for (const char* checkpoint : {"every_epochs: 0", "every_steps: 7 every_epochs: 0"}) {
      notes_.lines.clear();
      notes_.passes.clear();
      saved_.steps.clear();
      saved_.grouped_rows.clear();
      const std::unique_ptr<JobSession> job =
          MakeJob(JobOf("update_mode: SERIAL epochs: 2 checkpoint { " + std::string(checkpoint) + " }"), "",
                  {"fetch_config={fetch_var_names: [" + std::string(fetched) + "] print_period: 20}"});
      ASSERT_TRUE(Run(*job).ok());
      printed.push_back(text_of_lines());
      for (const PassReport& pass : notes_.passes) of_epochs.push_back(pass.metrics.back().second);
    }
    EXPECT_EQ(printed[0], printed[1]) << fetched;
    ASSERT_EQ(of_epochs.size(), 4U);
    EXPECT_EQ(of_epochs[0], of_epochs[2]) << fetched;
    EXPECT_EQ(of_epochs[1], of_epochs[3]) << fetched;
    ASSERT_GE(saved_.steps.size(), 16U);
    ASSERT_EQ(saved_.grouped_rows.size(), saved_.steps.size());
    for (size_t i = 0; i < saved_.steps.size(); ++i) {
      EXPECT_EQ(saved_.grouped_rows[i], static_cast<size_t>(saved_.steps[i] % 60 * kBatch)) << fetched;
    }
  }
}

TEST_P(MultiTrainerTest, EpochsThatPrintNothingLeaveAPoint) {
  for (const char* period : {"0", "100", "60"}) {
    notes_.lines.clear();
    notes_.points.clear();
    notes_.passes.clear();
    const std::unique_ptr<JobSession> job = MakeJob(
        JobOf("update_mode: SERIAL epochs: 2"), "",
        {"fetch_config={fetch_var_names: [\"loss\", \"batch_auc\"] print_period: " + std::string(period) + "}"});
    ASSERT_TRUE(Run(*job).ok());
    if (period == std::string("60")) {
      EXPECT_EQ(notes_.lines.size(), 2U);
      EXPECT_EQ(notes_.points.size(), 0U) << "a print of its last batch is the epoch's point";
      continue;
    }
    EXPECT_EQ(notes_.lines.size(), 0U);
    ASSERT_EQ(notes_.points.size(), 2U) << period;
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      const FetchLine& point = notes_.points[epoch];
      EXPECT_EQ(point.step, 60 * (static_cast<int64_t>(epoch) + 1));
      EXPECT_EQ(point.epoch, static_cast<int64_t>(epoch));
      EXPECT_EQ(point.examples, small_.lines() * (static_cast<int64_t>(epoch) + 1));
      std::vector<std::string> names;
      for (const FetchLine::Value& value : point.values) names.push_back(value.name);
      EXPECT_THAT(names, ElementsAre("loss", "batch_auc", "auc", "logloss", "calibration", "gauc"));
      EXPECT_EQ(point.values[1].values, point.values[2].values);
      EXPECT_EQ(point.values[2].values[0], notes_.passes[epoch].metrics[0].second);
    }
  }
}

// They were copied for each worker, and what the others had counted was dropped in silence.
TEST_P(MultiTrainerTest, APrivateVariableThatCannotBeAddedUpIsRefusedByName) {
  const std::unique_ptr<JobSession> job =
      MakeJob(JobOf("hogwild_param { stat_var_names: \"learning_rate_0\" }"), "", Threads());
  ASSERT_TRUE(job->InitParameters().ok());
  EXPECT_TRUE(CreateTrainer(*job, {}).ok());
  job->root().Var("learning_rate_0")->GetMutable<Tensor>()->Resize<double>({1})[0] = 0.01;
  EXPECT_EQ(CreateTrainer(*job, {}).status().ToString(),
            "invalid configuration: hogwild_param.stat_var_names: \"learning_rate_0\" is float64; what workers have of "
            "their own is added up, which is done for int64 and float32: declare it as one of them, or leave it out");
}

TEST_P(MultiTrainerTest, AStopWithinACheckpointEndsTheRunWithThatOne) {
  saved_.stop_while_saving = std::stop_source();
  const std::unique_ptr<JobSession> job = MakeJob(JobOf("epochs: 100 checkpoint { every_steps: 5 }"), "", Threads());
  const Result<RunReport> report = Run(*job, saved_.stop_while_saving.get_token());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_TRUE(report->interrupted);
  ASSERT_EQ(saved_.steps.size(), 1);
  EXPECT_EQ(report->state.step, saved_.steps[0]);
}

TEST_P(MultiTrainerTest, ALongCheckpointThatAStopEndsIsWrittenOnceMoreAndShorter) {
  saved_.gives_up = std::stop_source();
  const std::unique_ptr<JobSession> job = MakeJob(JobOf("epochs: 100 checkpoint { every_steps: 5 }"), "", Threads());
  const Result<RunReport> report = Run(*job, saved_.gives_up.get_token());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_TRUE(report->interrupted);
  EXPECT_THAT(saved_.steps, ElementsAre(report->state.step));
  EXPECT_EQ(report->saved_step, report->state.step);
}

TEST_P(MultiTrainerTest, WhatIsTrainedAgainSoonerThanSavedIsNotSavedAtAStop) {
  saved_.seconds_to_save = 1e6;
  saved_.stop_while_saving = std::stop_source();
  notes_.stop_at_fetch = saved_.stop_while_saving;
  const std::unique_ptr<JobSession> job = MakeJob(JobOf("epochs: 2"), "", {"fetch_config.print_period=1"});
  const Result<RunReport> report = Run(*job, saved_.stop_while_saving.get_token());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_TRUE(report->interrupted);
  EXPECT_THAT(saved_.steps, ElementsAre());
  EXPECT_EQ(report->saved_step, 0);
}

TEST_P(MultiTrainerTest, WhileInputIsWaitedForACheckpointComesUnasked) {
  saved_.seconds_to_save = 0.3;
  const std::unique_ptr<JobSession> job =
      MakeJob(JobOf("checkpoint { every_epochs: 0 }"), "",
              {"data_desc.thread_num=1", "data_desc.pipe_command=\"sleep 1; cat\""});
  const Result<RunReport> report = Run(*job);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  // Rows in memory are all there before the first batch.
  if (GetParam() == std::string("QueueDataset")) {
    EXPECT_GT(saved_.between, 0);
  }
  EXPECT_EQ(saved_.steps.size(), static_cast<size_t>(saved_.between));
}

INSTANTIATE_TEST_SUITE_P(Datasets, MultiTrainerTest, testing::Values("QueueDataset", "InMemoryDataset"));

}  // namespace
}  // namespace millrace
