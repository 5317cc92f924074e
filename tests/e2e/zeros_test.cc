// A slot whose zeros decide the label: training, evaluation and serving take the same ids from its lists.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/file.h"
#include "e2e/process.h"

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kRows = 400;

/// The number behind the first `key` that stands behind `where`.
double NumberBehind(const std::string& json, const std::string& where, const std::string& key) {
  const size_t at = json.find("\"" + key + "\":", json.find("\"" + where + "\""));
  if (at == std::string::npos) {
    ADD_FAILURE() << "no " << key << " behind " << where << " in " << json;
    return 0;
  }
  return std::stod(json.substr(at + key.size() + 3));
}

class Zeros : public testing::Test {
 protected:
  Zeros() : folder_(TempDir::Create("zeros").value()) {
    std::ofstream rows(Path("rows"));
    for (int i = 0; i < kRows; ++i) rows << (i % 2 == 0 ? "1 1 2 0 7\n" : "1 0 1 7\n");
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::string JobFile(const std::string& dataset, const std::string& feed, const std::string& more = "") const {
    std::ofstream(Path("job.prototxt")) << R"(
filelist: ")" << Path("rows") << R"("
eval { filelist: ")" << Path("rows") << R"(" }
epochs: 3
update_mode: SERIAL
dataset { class_name: ")" << dataset << R"(" }
data_desc {
  batch_size: 16 )" << feed << R"(
  multi_slot_desc {
    slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "bag" type: "uint64" is_used: true }
  }
}
model {
  table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.2 } } }
  layer { name: "e" embedding { slots: "bag" table: "t" pool: SUM } }
  layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { adagrad { lr: 0.2 } }
  metric { kind: AUC }
}
)" << more;
    return Path("job.prototxt");
  }

  /// Trains, and returns what run.json says; `*said` is what stood on standard error.
  std::string Train(const std::string& job, std::string* said) const {
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + Path("out")});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    *said = trainer.errors();
    return ReadFile(Path("out/run.json")).value();
  }

  /// Scores of a line with the 0 and of one without.
  std::pair<double, double> Scores(std::string* said) const {
    std::ofstream(Path("lines")) << "1 1 2 0 7\n1 0 1 7\n";
    Process predictor("predictor", {"--model_dir=" + Path("out/model"), "--input=" + Path("lines")});
    EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
    *said = predictor.errors();
    std::istringstream scores(predictor.output());
    std::pair<double, double> both;
    scores >> both.first >> both.second;
    return both;
  }

  const TempDir folder_;
};

struct Way {
  const char* name;
  const char* dataset;
  const char* feed;
  bool keeps;
};

class ZerosOfWay : public Zeros, public testing::WithParamInterface<Way> {};

TEST_P(ZerosOfWay, AreTheSameInTrainingEvaluationAndServing) {
  const Way& way = GetParam();
  const std::string job =
      JobFile(way.dataset, way.feed, "feature_importance { slots: \"bag\" repeats: 2 metric: \"auc\" }\n");
  std::string said;
  const std::string run = Train(job, &said);
  const double auc = NumberBehind(run, "eval", "auc");
  EXPECT_EQ(NumberBehind(run, "metrics", "auc") > 0.95, way.keeps) << run;
  EXPECT_EQ(auc, way.keeps ? 1 : 0.5) << run;
  EXPECT_EQ(NumberBehind(ReadFile(Path("out/feature_importance.json")).value(), "metric", "baseline"), auc);

  std::string scored;
  const auto [with_zero, without] = Scores(&scored);
  const std::string model = ReadFile(Path("out/model/MODEL")).value();
  if (way.keeps) {
    EXPECT_GT(with_zero, without + 0.3);
    EXPECT_THAT(model, HasSubstr("zeros: KEEP"));
    EXPECT_THAT(said + scored, Not(HasSubstr("left out")));
    return;
  }
  EXPECT_EQ(with_zero, without);
  EXPECT_THAT(model, HasSubstr("zeros: DROP"));
  EXPECT_THAT(scored, HasSubstr("warning: 1 zeros of sparse slots were left out, as in training"));
  EXPECT_EQ(NumberBehind(run, "data", "zero_dropped"), kRows / 2);
  const size_t at_once = said.find("left out: 200 zeros of sparse slots (data_desc.zeros)\n");
  EXPECT_LT(at_once, said.find("epoch 2: ")) << said;
  EXPECT_THAT(said, HasSubstr("\nevaluation: left out: 200 zeros of sparse slots"));
  EXPECT_THAT(said, HasSubstr("\n  left out    200 zeros of sparse slots (data_desc.zeros)\n"));
  EXPECT_THAT(said, HasSubstr("\n  left out    200 zeros of sparse slots (data_desc.zeros) of the evaluation\n"));
}

INSTANTIATE_TEST_SUITE_P(Rules, ZerosOfWay,
                         testing::Values(Way{"QueueByItself", "QueueDataset", "", true},
                                         Way{"MemoryByItself", "InMemoryDataset", "", true},
                                         Way{"QueueDrops", "QueueDataset", "zeros: DROP", false},
                                         Way{"MemoryDrops", "InMemoryDataset", "zeros: DROP", false},
                                         Way{"QueueAsPaddle", "QueueDataset", "zeros: FEED_DEFAULT", true},
                                         Way{"MemoryAsPaddle", "InMemoryDataset", "zeros: FEED_DEFAULT", false}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST_F(Zeros, AModelOfBinaryFilesReadsTextAsTheyWereWritten) {
  Process convert("inspect", {"convert", "--trainer_desc=" + JobFile("InMemoryDataset", "zeros: FEED_DEFAULT"),
                              "--output_dir=" + Path("binary")});
  ASSERT_EQ(convert.Wait(), 0) << convert.errors();
  EXPECT_THAT(convert.errors(), HasSubstr("zero_dropped: 200\n"));
  std::string said;
  const std::string run = Train(Path("binary/job.prototxt"), &said);
  EXPECT_EQ(NumberBehind(run, "eval", "auc"), 0.5) << run;
  const auto [with_zero, without] = Scores(&said);
  EXPECT_EQ(with_zero, without);
}

TEST_F(Zeros, AnEarlierNameOfTheRuleIsRead) {
  std::string said;
  const std::string run = Train(JobFile("InMemoryDataset", "zeros: AS_CLASS"), &said);
  EXPECT_EQ(NumberBehind(run, "data", "zero_dropped"), kRows / 2);
}

TEST_F(Zeros, RowsThatDropLastLeavesOutAreTold) {
  std::ofstream(Path("rows"), std::ios::app) << "1 0 1 7\n\n1 0 1 7\n1 0 1 7\n";
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    std::string said;
    const std::string run = Train(JobFile(dataset, "drop_last: true"), &said);
    EXPECT_EQ(NumberBehind(run, "data", "drop_last"), 3) << dataset;
    EXPECT_THAT(said, HasSubstr("  left out    3 rows of batches that were not full (data_desc.drop_last)\n"))
        << dataset;
    EXPECT_THAT(said, HasSubstr("  left out    1 blank line\n")) << dataset;
  }
}

}  // namespace
}  // namespace millrace
