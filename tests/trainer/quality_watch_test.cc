#include "report/quality_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "e2e/small_job.h"
#include "trainer/default_environment.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

class QualityWatchTest : public testing::Test {
 protected:
  Result<QualityWatch> Watch(const std::string& job_text) {
    job_ = MakeJob(small_.DeepJob(job_text), "");
    return QualityWatch::Create(job_->job());
  }
  std::string Eval(const std::string& text) const {
    return "eval { filelist: \"" + small_.files()[0] + "\" " + text + " } ";
  }
  std::string Stopping(const std::string& stopping) const { return Eval("early_stopping { " + stopping + " }"); }
  std::string KeepBest(const std::string& metric) const {
    return Eval("") + "checkpoint { keep_best: \"" + metric + "\" }";
  }
  /// Which of a row of evaluations were the best so far, as "1" and "0".
  std::string Bests(const std::string& job_text, const std::string& metric, const std::vector<double>& values) {
    const Result<QualityWatch> watch = Watch(job_text);
    EXPECT_TRUE(watch.ok()) << watch.status().ToString();
    RunState state;
    std::string bests;
    for (const double value : values) {
      EvalReport report;
      report.loss = metric == "loss" ? value : std::nan("");
      report.metrics = {{"auc", 0.5}, {"logloss", 0.5}, {"calibration", 1}};
      for (auto& [name, of_metric] : report.metrics) {
        if (name == metric) of_metric = value;
      }
      bests += watch->IsBest(report, &state) ? '1' : '0';
    }
    return bests;
  }

  SmallJob small_{32, 1};
  std::unique_ptr<JobSession> job_;
};

TEST_F(QualityWatchTest, SomeMetricsAreToRiseOthersToFall) {
  const std::vector<double> values = {0.5, 0.6, 0.4, 0.6, 0.7};
  EXPECT_EQ(Bests(KeepBest("auc"), "auc", values), "11001");
  EXPECT_EQ(Bests(KeepBest("logloss"), "logloss", values), "10100");
  EXPECT_EQ(Bests(KeepBest("loss"), "loss", values), "10100");
}

TEST_F(QualityWatchTest, CalibrationIsBestAtOne) {
  EXPECT_EQ(Bests(KeepBest("calibration"), "calibration", {0.7, 1.2, 1.4, 0.9}), "1101");
}

// A name says nothing: a new metric that rises was taken for one that falls, and its worst model kept.
TEST_F(QualityWatchTest, AMetricsEntryAndNotItsNameSaysWhichOfItsValuesAreBetter) {
  Environment environment = CopyOf(DefaultEnvironment());
  environment.metrics = MetricRegistry();
  for (const auto& [name, doc, info] : DefaultEnvironment().metrics.entries()) {
    MetricInfo mine = info;
    if (name == "AUC") mine.better = MetricBetter::kLower;
    if (name == "LOGLOSS") mine.better = MetricBetter::kHigher;
    ASSERT_TRUE(environment.metrics.Add(name, doc, std::move(mine)).ok());
  }
  const auto bests = [&](const std::string& metric) {
    job_ = MakeJob(small_.DeepJob(KeepBest(metric)), "", {}, environment);
    const QualityWatch watch = QualityWatch::Create(job_->job()).value();
    RunState state;
    std::string found;
    for (const double value : {0.5, 0.6, 0.4, 0.7}) {
      EvalReport report;
      report.metrics = {{metric, value}};
      found += watch.IsBest(report, &state) ? '1' : '0';
    }
    return found;
  };
  EXPECT_EQ(bests("auc"), "1010");
  EXPECT_EQ(bests("logloss"), "1101");
}

TEST_F(QualityWatchTest, AValueThatIsNoNumberIsNeverTheBest) {
  EXPECT_EQ(Bests(KeepBest("auc"), "auc", {std::nan(""), 0.1, std::nan("")}), "010");
  EXPECT_EQ(Bests(KeepBest("loss"), "loss", {HUGE_VAL, std::nan(""), 0.7, 0.8}), "0010");
}

TEST_F(QualityWatchTest, MinDeltaIsWhatABetterValueMustGain) {
  EXPECT_EQ(Bests(Stopping("metric: \"auc\" patience: 2 min_delta: 0.05"), "auc", {0.5, 0.54, 0.56}), "101");
}

TEST_F(QualityWatchTest, PatienceCountsEvaluationsSinceTheBest) {
  const Result<QualityWatch> watch = Watch(Stopping("metric: \"auc\" patience: 2"));
  ASSERT_TRUE(watch.ok()) << watch.status().ToString();
  RunState state;
  std::string stops;
  for (const double auc : {0.5, 0.4, 0.6, 0.5, 0.6}) {
    EvalReport report;
    report.metrics = {{"auc", auc}};
    (void)watch->IsBest(report, &state);
    stops += watch->ShouldStop(state) ? '1' : '0';
  }
  EXPECT_EQ(stops, "00001");
  EXPECT_EQ(state.best_metric, 0.6);
}

TEST_F(QualityWatchTest, WithoutAWatchNothingIsBestAndNothingStops) {
  const Result<QualityWatch> watch = Watch("");
  RunState state;
  state.evaluations_since_best = 100;
  EXPECT_FALSE(watch->IsBest({}, &state));
  EXPECT_FALSE(watch->ShouldStop(state));
}

}  // namespace
}  // namespace millrace
