#include "trainer/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "e2e/small_job.h"
#include "runtime/variable_store.h"
#include "threads_now.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::HasSubstr;

struct Rows {
  std::vector<double> predictions;
  std::vector<double> labels;
  std::vector<uint64_t> groups;
};

/// The evaluation set's rows as the job's forward part predicts them, in one thread.
Rows PredictAll(JobSession& job) {
  Rows rows;
  Dataset& dataset = *job.eval_datasets()[0];
  const SlotSchema& schema = dataset.schema();
  const auto frame = Frame::Create(**job.job().eval(), &schema, job.root(), job.frame_options(0, true)).value();
  EXPECT_TRUE(dataset.BeginPass({}).ok());
  while (true) {
    const BatchPtr batch = dataset.source(0).Next({}).value();
    if (batch == nullptr) break;
    RunContext context;
    context.batch = batch.get();
    context.rows = batch->rows();
    EXPECT_TRUE(frame->Run(context).ok());
    const float* predictions = frame->Find(job.job().model().prediction)->Get<Tensor>().data<float>();
    for (int i = 0; i < batch->rows(); ++i) {
      rows.predictions.push_back(static_cast<double>(predictions[i]));
      rows.labels.push_back(static_cast<double>(batch->floats(schema.Find("label"))[static_cast<size_t>(i)]));
      const SlotId group = schema.Find("B");
      rows.groups.push_back(batch->ids(group)[batch->offsets(group)[static_cast<size_t>(i)]]);
    }
  }
  EXPECT_TRUE(dataset.EndPass().ok());
  return rows;
}

double MeanLogLoss(const Rows& rows) {
  double sum = 0;
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    sum -= std::log(rows.labels[i] > 0.5 ? rows.predictions[i] : 1 - rows.predictions[i]);
  }
  return sum / static_cast<double>(rows.labels.size());
}

/// Share of pairs of a click and none, within groups, that stand in order; ties count half. By groups' rows.
double GroupedAucOfPairs(const Rows& rows) {
  std::map<uint64_t, std::vector<size_t>> members;
  for (size_t i = 0; i < rows.groups.size(); ++i) members[rows.groups[i]].push_back(i);
  double weighted = 0;
  double weight = 0;
  for (const auto& [group, of_group] : members) {
    double pairs = 0;
    double ordered = 0;
    for (const size_t positive : of_group) {
      for (const size_t negative : of_group) {
        if (rows.labels[positive] <= rows.labels[negative]) continue;
        pairs += 1;
        const double difference = rows.predictions[positive] - rows.predictions[negative];
        ordered += difference > 0 ? 1 : difference == 0 ? 0.5 : 0;
      }
    }
    if (pairs == 0) continue;
    weighted += ordered / pairs * static_cast<double>(of_group.size());
    weight += static_cast<double>(of_group.size());
  }
  return weighted / weight;
}

/// Trains on the first file of a log and evaluates on two others with ids that training never saw.
class EvaluatorTest : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  EvaluatorTest() {
    for (int f = 1; f < 3; ++f) {
      std::ofstream out(Held(f));
      std::ifstream in(small_.files()[static_cast<size_t>(f)]);
      int lines = 0;
      for (std::string line; std::getline(in, line); ++lines) {
        // Groups of both classes, and one in ten ids is new.
        if (lines % 4 == 0) line[2] = line[2] == '0' ? '1' : '0';
        out << line << (lines % 10 == 0 ? "7" : "") << "\n";
      }
    }
  }
  std::string Held(int f) const { return small_.folder() + "/held-" + std::to_string(f); }
  std::unique_ptr<JobSession> MakeUntrained() {
    const auto& [dataset, workers] = GetParam();
    const std::string path =
        small_.DeepJob("thread_num: " + std::to_string(workers) + " dataset { class_name: \"" + dataset +
                       "\" } eval { filelist: \"" + Held(1) + "\" filelist: \"" + Held(2) + "\" every_epochs: 0 }");
    return MakeJob(path, "", {"filelist=[\"" + small_.files()[0] + "\"]"});
  }
  std::unique_ptr<JobSession> MakeTrained() {
    std::unique_ptr<JobSession> job = MakeUntrained();
    EXPECT_TRUE(TrainJob(*job).ok());
    return job;
  }
  std::vector<std::string> Parameters(const JobSession& job, const std::string& name) const {
    const std::string folder = small_.folder() + "/" + name;
    EXPECT_TRUE(StoreVariables(job.job().model().main, folder, job.root(), TableContent::kAll, 1).ok());
    return FolderContent(folder);
  }

  const SmallJob small_{960, 3};
};

double ValueOf(const EvalReport& report, const std::string& name) {
  for (const auto& [metric, value] : report.metrics) {
    if (metric == name) return value;
  }
  return std::nan("");
}

TEST_P(EvaluatorTest, SaysWhatThePredictionsOfEveryRowSay) {
  const std::unique_ptr<JobSession> job = MakeTrained();
  EvalReport report;
  {
    const auto evaluator = Evaluator::Create(*job, *job->eval_datasets()[0]).value();
    report = evaluator->Run({}, {}).value();
    const EvalReport again = evaluator->Run({}, {}).value();
    EXPECT_EQ(again.examples, report.examples);
    EXPECT_EQ(ValueOf(again, "gauc"), ValueOf(report, "gauc"));
  }
  if (auto* memory = dynamic_cast<InMemoryControl*>(job->eval_datasets()[0]); memory != nullptr) {
    ASSERT_TRUE(memory->LoadIntoMemory({}).ok()) << "the evaluator did not give its memory back";
  }
  const Rows rows = PredictAll(*job);
  ASSERT_EQ(rows.labels.size(), 640U);
  EXPECT_EQ(report.examples, 640);
  EXPECT_NEAR(report.loss, MeanLogLoss(rows), 1e-5);
  EXPECT_NEAR(ValueOf(report, "logloss"), MeanLogLoss(rows), 1e-6);
  EXPECT_NEAR(ValueOf(report, "gauc"), GroupedAucOfPairs(rows), 1e-9);
}

TEST_P(EvaluatorTest, WritesNoParameterAndMakesNoRow) {
  const std::unique_ptr<JobSession> job = MakeTrained();
  const std::vector<std::string> before = Parameters(*job, "before");
  ASSERT_TRUE(Evaluator::Create(*job, *job->eval_datasets()[0]).value()->Run({}, {}).ok());
  EXPECT_EQ(Parameters(*job, "after"), before);
}

TEST_P(EvaluatorTest, ABadLineEndsItWithItsPlaceAndNoThreadStays) {
  std::ofstream(Held(2), std::ios::app) << "1 x\n";
  const std::unique_ptr<JobSession> job = MakeUntrained();
  ASSERT_TRUE(job->InitParameters({}).ok());
  const int threads = ThreadsNow();
  const Result<EvalReport> report = Evaluator::Create(*job, *job->eval_datasets()[0]).value()->Run({}, {});
  EXPECT_EQ(report.status().code(), StatusCode::kBadData);
  EXPECT_THAT(report.status().message(), HasSubstr(Held(2) + ":321:"));
  EXPECT_EQ(ThreadsOnce(threads), threads);
}

TEST_P(EvaluatorTest, AStopEndsIt) {
  const std::unique_ptr<JobSession> job = MakeTrained();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Evaluator::Create(*job, *job->eval_datasets()[0]).value()->Run({}, stop.get_token()).status().code(),
            StatusCode::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(Datasets, EvaluatorTest,
                         testing::Combine(testing::Values("QueueDataset", "InMemoryDataset"), testing::Values(1, 3)));

}  // namespace
}  // namespace millrace
