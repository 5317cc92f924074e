// A job of two losses from its file to the scores of a saved model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "e2e/process.h"
#include "e2e/small_job.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Lines of a SmallJob with a second label, a weight and a mask behind them, and a job that learns both.
class TwoTaskJob {
 public:
  explicit TwoTaskJob(int lines, const std::string& mask = "") : small_(lines, 1) {
    std::istringstream clicks(ReadFile(small_.files()[0]).value());
    std::ofstream out(small_.files()[0]);
    int number = 0;
    for (std::string line; std::getline(clicks, line); ++number) {
      const std::string known = !mask.empty() ? mask : number % 5 == 0 ? "0" : "1";
      const std::string even = std::stoi(line.substr(line.rfind(' ') + 1)) % 2 == 0 ? "1" : "0";
      out << line << " 1 " << (known == "0" ? "-1" : even) << " 1 " << 0.5 + number % 3 << " 1 " << known << "\n";
    }
  }

  const SmallJob& small() const { return small_; }
  std::string folder() const { return small_.folder(); }

  std::string Write(const std::string& extra = "") const {
    std::ofstream job(folder() + "/two.prototxt");
    job << "data_desc { batch_size: 32\n"
           "multi_slot_desc {\n"
           "  slots { name: 'label' type: 'uint64' is_used: true is_dense: true shape: [-1, 1] }\n"
           "  slots { name: 'ones' type: 'float' is_used: true is_dense: true shape: [-1, 1] }\n"
           "  slots { name: 'uid' type: 'uint64' }\n"
           "  slots { name: 'A' type: 'uint64' is_used: true }\n"
           "  slots { name: 'B' type: 'uint64' is_used: true }\n"
           "  slots { name: 'even' type: 'float' is_used: true is_dense: true shape: [-1, 1] }\n"
           "  slots { name: 'weight' type: 'float' is_used: true is_dense: true shape: [-1, 1] }\n"
           "  slots { name: 'known' type: 'uint64' is_used: true is_dense: true shape: [-1, 1] }\n"
           "} }\n"
           "model {\n"
           "  table { name: 't' dim: 4 key: SLOT_AND_ID }\n"
           "  layer { name: 'e' embedding { slots: ['A', 'B'] table: 't' } }\n"
           "  layer { name: 'h' fc { in: ['e', 'ones'] units: 8 act: RELU } }\n"
           "  layer { name: 'third_logit' fc { in: 'h' units: 1 } }\n"
           "  layer { name: 'even_share' fc { in: 'h' units: 1 act: SIGMOID } }\n"
           "  loss { name: 'third' kind: SIGMOID_CROSS_ENTROPY in: 'third_logit' label: 'label' class_weight: [1, 2] "
           "}\n"
           "  loss { name: 'even' kind: LOG_LOSS in: 'even_share' label: 'even' sample_weight: 'weight' mask: 'known' "
           "}\n"
           "  optimizer { adagrad { lr: 0.05 } }\n"
           "  metric { kind: AUC }\n"
           "  metric { kind: LOGLOSS }\n"
           "  metric { kind: GAUC loss: 'even' group: 'A' name: 'even_gauc' }\n"
           "}\n"
           "fetch_config { fetch_var_names: ['loss', 'loss.even', 'even/auc', 'batch_third/auc'] print_period: 3 }\n"
           "filelist: '" +
               small_.files()[0] + "'\n" + extra;
    return folder() + "/two.prototxt";
  }

 private:
  SmallJob small_;
};

TEST(SeveralTasksJob, TrainsMeasuresSavesAndScoresBoth) {
  const TwoTaskJob two(900);
  const std::string out = two.folder() + "/out";
  const std::string files = "filelist: '" + two.small().files()[0] + "'";
  Process trainer("trainer", {"--trainer_desc=" + two.Write("thread_num: 2 epochs: 12 eval { " + files +
                                                            " early_stopping { metric: 'even/auc' patience: 20 } }"
                                                            " dump_fields: 'prediction.third' dump_fields_path: '" +
                                                            two.folder() + "/dump'"),
                              "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::string run = ReadFile(out + "/run.json").value();
  for (const char* name : {"\"third/auc\":", "\"even/auc\":", "\"third/logloss\":", "\"even_gauc\":"}) {
    EXPECT_THAT(run, HasSubstr(name));
    EXPECT_THAT(ReadFile(out + "/metrics.jsonl").value(), HasSubstr("\"eval_" + std::string(name).substr(1)));
  }
  EXPECT_THAT(trainer.output() + trainer.errors(), HasSubstr("even/auc"));
  EXPECT_THAT(run, Not(HasSubstr("weightless")));

  Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + two.small().files()[0],
                                  "--output=" + two.folder() + "/scores"});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  EXPECT_THAT(predictor.errors(), HasSubstr("a line has the scores, with tabs between them: third\teven\n"));
  EXPECT_THAT(predictor.errors(), HasSubstr("third/auc "));
  EXPECT_THAT(predictor.errors(), HasSubstr("even/auc "));
  EXPECT_THAT(predictor.errors(), HasSubstr("of 720 examples")) << "the masked ones are not counted";
  std::istringstream lines(ReadFile(two.folder() + "/scores").value());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'), 1) << line;
  }
  EXPECT_EQ(count, 900);
  Process same("predictor", {"--model_dir=" + out + "/model", "--input=" + two.small().files()[0],
                             "--compare=" + two.folder() + "/scores"});
  EXPECT_EQ(same.Wait(), 0) << same.errors();
  EXPECT_THAT(same.errors(), HasSubstr("1800 scores agree"));
  Process one("predictor", {"--model_dir=" + out + "/model", "--input=" + two.small().files()[0], "--prediction=even",
                            "--output=-"});
  EXPECT_EQ(one.Wait(), 0) << one.errors();
  EXPECT_THAT(one.output(), Not(HasSubstr("\t")));
}

TEST(SeveralTasksJob, ScoresOfAnOnlyLossAreMeasuredByItsWeights) {
  const TwoTaskJob two(900);
  const std::string file = two.Write();
  std::string job = ReadFile(file).value();
  const size_t first = job.find("  loss { name: 'third'");
  job.erase(first, job.find("  loss { name: 'even'") - first);
  job.replace(job.find("name: 'even' kind"), 13, "");
  const size_t fetches = job.find("fetch_config");
  job.erase(fetches, job.find('\n', fetches) - fetches);
  job.replace(job.find("loss: 'even' "), 13, "");
  job.insert(job.find("sample_weight: 'weight'"), "class_weight: [1, 3] ");
  const std::string files = "filelist: '" + two.small().files()[0] + "'";
  std::ofstream(file) << job << "thread_num: 1 update_mode: SERIAL epochs: 2 eval { " << files << " }\n";
  const std::string out = two.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + file, "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + two.small().files()[0],
                                  "--output=" + two.folder() + "/scores"});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  EXPECT_THAT(predictor.errors(), HasSubstr("of 720 examples")) << "the masked ones are not counted";
  // As the evaluation measured it, weights and all.
  const std::string run = ReadFile(out + "/run.json").value();
  const size_t eval = run.find("\"eval\": {");
  ASSERT_NE(eval, std::string::npos) << run;
  const size_t value = run.find("\"logloss\": ", eval) + 11;
  const double measured = std::stod(run.substr(value));
  const size_t printed = predictor.errors().find("logloss ");
  ASSERT_NE(printed, std::string::npos) << predictor.errors();
  EXPECT_NEAR(std::stod(predictor.errors().substr(printed + 8)), measured, 1e-6);
  Process inspect("inspect", {"model", "--model_dir=" + out + "/model"});
  EXPECT_EQ(inspect.Wait(), 0) << inspect.errors();
  EXPECT_THAT(inspect.output(),
              HasSubstr("even_share, label even, sample_weight weight, mask known, class_weight 1 3"));
}

TEST(SeveralTasksJob, AFileThatLacksOneLabelHasTheMetricsOfTheOther) {
  const SmallJob small(3, 1);
  const std::string& folder = small.folder();
  std::ofstream csv(folder + "/rows.csv");
  std::ofstream new_rows(folder + "/new.csv");
  csv << "x,first,second\n";
  new_rows << "x,second\n";
  for (int i = 0; i < 100; ++i) {
    csv << i % 7 << "," << i % 2 << "," << (i % 7 < 3 ? 1 : 0) << "\n";
    new_rows << i % 7 << "," << (i % 7 < 3 ? 1 : 0) << "\n";
  }
  csv.close();
  new_rows.close();
  std::ofstream(folder + "/job.prototxt")
      << "filelist: '" << folder << "/rows.csv'\n"
      << "data_desc { name: 'csv' batch_size: 16\n"
         "  feature { name: 'a,label' from: 'first' id {} is_dense: true }\n"
         "  feature { name: 'second' id {} is_dense: true }\n"
         "  feature { name: 'x' hash {} }\n"
         "}\n"
         "model { table { name: 't' dim: 4 } layer { name: 'e' embedding { slots: 'x' table: 't' } }\n"
         "  layer { name: 'y' fc { in: 'e' units: 1 } } layer { name: 'z' fc { in: 'e' units: 1 } }\n"
         "  loss { name: 'one' kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'a,label' }\n"
         "  loss { name: 'two' kind: SIGMOID_CROSS_ENTROPY in: 'z' label: 'second' }\n"
         "  optimizer { adagrad { lr: 0.1 } } }\n";
  Process trainer("trainer", {"--trainer_desc=" + folder + "/job.prototxt", "--output_dir=" + folder + "/out"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  Process predictor("predictor", {"--model_dir=" + folder + "/out/model", "--input=" + folder + "/new.csv"});
  EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
  EXPECT_THAT(predictor.errors(), HasSubstr("note: the input has no column \"first\", on which no score depends; "
                                            "without it there are no metrics of \"one\"\n"));
  EXPECT_THAT(predictor.errors(), HasSubstr("two/auc"));
  EXPECT_THAT(predictor.errors(), Not(HasSubstr("one/auc")));
  EXPECT_THAT(predictor.errors(), Not(HasSubstr("are not those of the first file")));
  std::ofstream(folder + "/other.csv") << "x;second\n1;0\n";
  Process delimiter("predictor", {"--model_dir=" + folder + "/out/model", "--input=" + folder + "/other.csv"});
  EXPECT_EQ(delimiter.Wait(), 3);
  EXPECT_THAT(delimiter.errors(), HasSubstr("it seems to be \";\""));
  EXPECT_THAT(delimiter.errors(), Not(HasSubstr("note:")));
}

TEST(SeveralTasksJob, WritesBothPredictionsForOtherRuntimes) {
  const TwoTaskJob two(300);
  const std::string out = two.folder() + "/out";
  Process trainer("trainer",
                  {"--trainer_desc=" + two.Write("output { export { format: ONNX vocabulary: 1000 } export { "
                                                 "format: PADDLE vocabulary: 1000 } }"),
                   "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::string onnx = ReadFile(out + "/onnx/offline.onnx").value();
  EXPECT_THAT(onnx, HasSubstr("prediction.third"));
  EXPECT_THAT(onnx, HasSubstr("even_share"));
  EXPECT_THAT(onnx, Not(HasSubstr("example_weights")));
  Process paddle("predictor", {"--model_dir=" + out + "/paddle", "--input=" + two.small().files()[0],
                               "--prediction=even_share", "--output=-"});
  EXPECT_EQ(paddle.Wait(), 0) << paddle.errors();
}

TEST(SeveralTasksJob, AHistoryIsNotForOtherRuntimes) {
  const TwoTaskJob two(50);
  for (const char* format : {"ONNX", "PADDLE"}) {
    Process trainer(
        "trainer",
        {"--trainer_desc=" + two.Write(std::string("output { export { format: ") + format + " vocabulary: 9 } }"),
         "--set=model.layer[h]={ name: \"h\" history { slots: \"B\" table: \"t\" max_length: 3 } }",
         "--output_dir=" + two.folder() + "/out"});
    EXPECT_EQ(trainer.Wait(), 2);
    EXPECT_THAT(trainer.errors(),
                HasSubstr("operator \"history_window\" is of Millrace, which other runtimes do not have"));
  }
}

TEST(SeveralTasksJob, WeightsThatAreAllZeroAreSaid) {
  const TwoTaskJob two(100, "0");
  const std::string out = two.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + two.Write(), "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(trainer.output() + trainer.errors(), HasSubstr("of all examples are 0 for loss \"even\""));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"weightless_losses\": [\"even\"]"));
}

TEST(SeveralTasksJob, WhatIsNoMaskEndsTheRunWithItsLine) {
  const TwoTaskJob two(100, "2");
  Process trainer("trainer", {"--trainer_desc=" + two.Write()});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("mask \"known\" of " + two.small().files()[0] + ":1 is 2"));
}

TEST(SeveralTasksJob, MistakesAreNamedAtTheirLines) {
  const TwoTaskJob two(10);
  const std::string job = two.Write("eval { early_stopping { metric: 'auc' } filelist: 'x' }");
  Process trainer("trainer", {"--trainer_desc=" + job, "--set=model.loss[even].name=third", "--set",
                              "model.loss[third].mask=A", "--set", "model.metric[0].loss=odd"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("loss \"third\" is there already"));
  EXPECT_THAT(trainer.errors(), HasSubstr("slot \"A\" must have one value an example"));
  EXPECT_THAT(trainer.errors(), HasSubstr("no loss \"odd\""));
  EXPECT_THAT(trainer.errors(), HasSubstr("no metric \"auc\""));
}

TEST(SeveralTasksJob, AResumedRunHasTheSumsOfBefore) {
  const TwoTaskJob two(600);
  const std::string whole = two.folder() + "/whole";
  const std::string parts = two.folder() + "/parts";
  const std::string job = "--trainer_desc=" + two.Write("epochs: 2 update_mode: SERIAL");
  Process once("trainer", {job, "--output_dir=" + whole});
  ASSERT_EQ(once.Wait(), 0) << once.errors();
  Process first("trainer", {job, "--output_dir=" + parts, "--set=epochs=1"});
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  Process second("trainer", {job, "--output_dir=" + parts, "--resume=auto"});
  ASSERT_EQ(second.Wait(), 0) << second.errors();
  const auto metrics = [](const std::string& folder) {
    const std::string text = ReadFile(folder + "/run.json").value();
    const size_t at = text.find("\"even/auc\"");
    return text.substr(at, text.find('}', at) - at);
  };
  EXPECT_EQ(metrics(parts), metrics(whole));
}

}  // namespace
}  // namespace millrace
