#include "runs/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runs/written_run.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RunFolder, HasTheSummaryTheJobAndTheCurves) {
  const WrittenRuns runs;
  const RunRecord run = ReadRun(runs.WriteRun("a", "epochs: 3 seed: 7", 0.6, 0.8) + "//").value();
  EXPECT_EQ(run.name, runs.folder("a"));
  EXPECT_TRUE(run.has_ended);
  EXPECT_EQ(run.steps, 20);
  EXPECT_EQ(run.examples, 640);
  EXPECT_EQ(run.seconds, 2.0);
  EXPECT_EQ(run.job->epochs(), 3);
  EXPECT_EQ(run.better.at("auc"), MetricBetter::kHigher);
  ASSERT_EQ(run.evaluations.size(), 2U);
  EXPECT_EQ(run.evaluations[0].name, "loss");
  EXPECT_EQ(run.evaluations[1].name, "auc");
  EXPECT_EQ(run.evaluations[1].points[1].step, 20);
  EXPECT_EQ(run.evaluations[1].points[1].value, 0.8);
  ASSERT_EQ(run.training.size(), 2U) << "what has several values has no curve";
  EXPECT_TRUE(std::isnan(run.training[1].points[0].value)) << "null is no value";
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(RunFolder, OneThatIsNoRunIsTold) {
  const WrittenRuns runs;
  EXPECT_THAT(ReadRun(runs.folder("absent")).status().message(), HasSubstr("no folder"));
  EXPECT_THAT(ReadRun(runs.Write("a", "scores.txt", "1\n")).status().message(),
              EndsWith("is no run: it has neither run.json nor metrics.jsonl"));
  EXPECT_THAT(ReadRun(runs.folder("a") + "/scores.txt").status().message(), HasSubstr("is no folder"));
}

TEST(RunFolder, ALastLineThatIsCutIsLeftOut) {
  const WrittenRuns runs;
  const std::string folder =
      runs.Write("a", "metrics.jsonl", "{\"step\":5,\"examples\":9,\"loss\":0.5}\n{\"step\":6,\"ex");
  const RunRecord run = ReadRun(folder).value();
  EXPECT_FALSE(run.has_ended);
  EXPECT_EQ(run.steps, 5);
  EXPECT_EQ(run.training[0].points.size(), 1U);
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("/metrics.jsonl:2: the last line is cut"), HasSubstr("no run.json")));
}

TEST(RunFolder, ALineThatIsNoneIsToldWithItsPlace) {
  const WrittenRuns runs;
  const auto message = [&](const std::string& text) {
    const Status status = ReadRun(runs.Write("a", "metrics.jsonl", text)).status();
    EXPECT_EQ(status.code(), StatusCode::kBadData);
    return status.message();
  };
  EXPECT_THAT(message("{\"step\":5}\n{\"step\":\n{\"step\":7}\n"), HasSubstr("/metrics.jsonl:2: expected an object"));
  EXPECT_THAT(message("[1]\n"), HasSubstr("/metrics.jsonl:1: expected an object"));
  EXPECT_THAT(message("{\"loss\":1}\n"), HasSubstr("/metrics.jsonl:1: a line of a run's metrics has a \"step\""));
  EXPECT_THAT(message("\n"), HasSubstr("/metrics.jsonl:1: expected"));
  EXPECT_THAT(ReadRun(runs.Write("b", "run.json", "{\"exam")).status().message(), HasSubstr("/run.json: expected an"));
  EXPECT_THAT(ReadRun(runs.Write("b", "run.json", "{}")).status().message(), HasSubstr("/run.json: a run's summary"));
}

TEST(RunFolder, ARunOfAnEarlierBuildHasNoJob) {
  const WrittenRuns runs;
  runs.Write("a", "run.json", R"({"examples": 8, "batches": 2, "interrupted": true, "eval": {"step": 2, "auc": 0.5}})");
  const RunRecord run = ReadRun(runs.folder("a")).value();
  EXPECT_EQ(run.job, nullptr);
  EXPECT_TRUE(run.interrupted);
  EXPECT_TRUE(std::isnan(run.seconds));
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("it has no \"job\""), HasSubstr("no metrics.jsonl")));
}

TEST(RunFolder, WithoutLinesTheEvaluationIsThatOfTheSummary) {
  const WrittenRuns runs;
  runs.Write("a", "run.json",
             R"({"examples": 8, "batches": 2, "eval": {"step": 2, "epoch": 1, "examples": 5, "loss": 0.6, "auc": 0.5},)"
             R"( "better": {"higher": ["auc"], "lower": ["loss"]}, "job": "epochs: 1"})");
  const RunRecord run = ReadRun(runs.folder("a")).value();
  ASSERT_EQ(run.evaluations.size(), 2U);
  EXPECT_EQ(run.Evaluation("auc")->points[0].value, 0.5);
  EXPECT_EQ(run.Evaluation("gauc"), nullptr);
}

}  // namespace
}  // namespace millrace
