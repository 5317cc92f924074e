#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/reader_job.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

/// DeepJob with the float slot "ones" beside the embeddings.
std::string DenseJob(const SmallJob& small, const std::string& extra) {
  const std::string path = small.DeepJob(extra);
  std::string text = ReadFile(path).value();
  const std::string before = "layer { name: \"h\" fc { in: \"e\"";
  text.replace(text.find(before), before.size(),
               "layer { name: \"x\" concat { in: \"e\" in: \"ones\" } }\n  layer { name: \"h\" fc { in: \"x\"");
  std::ofstream(path) << text;
  return path;
}

/// Puts a line into a file, behind those that are there.
void Append(const std::string& file, const std::string& line) { std::ofstream(file, std::ios::app) << line << "\n"; }

constexpr char kNanLine[] = "1 1 1 nan 1 9999 1 7 2 9 9";

TEST(NanCheck, KeepsABatchThatInspectAndTrainerReadAgain) {
  const SmallJob small(100, 1);
  std::ofstream(small.files()[0], std::ios::app) << "1 nan 1 1 1 101 1 7 2 9 9\n1 0 1 1 1 102 1 8 2 3 4\n";
  const std::string job = small.DeepJob("update_mode: SERIAL check_nan_var_names: \"loss\"");
  const std::string out = small.folder() + "/out";
  // The log loss would refuse such a label before.
  const std::string squared = "--set=model.loss.kind=SQUARED_ERROR";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, squared});
  ASSERT_EQ(trainer.Wait(), 3);
  // Batches of 32: lines 97 to 102 are the fourth.
  const std::string kept = out + "/nan_batch_3.txt";
  const std::string errors = trainer.errors();
  EXPECT_THAT(errors,
              HasSubstr("variable \"loss\" holds a NaN or an infinite value in the batch of " + small.files()[0] +
                        ":97-102 (step 3); slot \"label\" of " + small.files()[0] + ":101 holds nan"));
  EXPECT_THAT(errors, HasSubstr("the first operator with such an output is op["));
  EXPECT_THAT(errors, HasSubstr("the batch is kept: look at it, or run it again, with --set filelist='[\"" + kept));
  const std::string lines = ReadFile(small.files()[0]).value();
  size_t at = lines.size();
  for (int i = 0; i < 7; ++i) at = lines.rfind('\n', at - 1);
  EXPECT_EQ(ReadFile(kept).value(), lines.substr(at + 1));

  const std::vector<std::string> replay = {"--trainer_desc=" + job, "--set=filelist=[\"" + kept + "\"]",
                                           "--set=data_desc.pipe_command=cat", "--set=data_desc.batch_size=6"};
  std::vector<std::string> look = replay;
  look.insert(look.begin(), {"head", "--format=multi_slot"});
  Process inspect("inspect", look);
  ASSERT_EQ(inspect.Wait(), 0) << inspect.errors();
  EXPECT_EQ(inspect.output(), ReadFile(kept).value());

  std::vector<std::string> again = replay;
  again.insert(again.end(), {squared, "--set=infer=true", "--set=check_nan_var_names=[\"loss\", \"y\"]"});
  Process second("trainer", again);
  EXPECT_EQ(second.Wait(), 3);
  EXPECT_THAT(second.errors(), HasSubstr("variable \"loss\" holds a NaN or an infinite value in the batch of " + kept +
                                         ":1-6 (step 0)"));
}

TEST(NanOfALine, EndsTheRunWithItsPlaceAndKeepsTheLastFiniteCheckpoint) {
  const SmallJob small(400, 1);
  Append(small.files()[0], kNanLine);
  const std::string job = DenseJob(small, "update_mode: SERIAL checkpoint { every_steps: 5 }");
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  EXPECT_EQ(trainer.Wait(), 3);
  const std::string errors = trainer.errors();
  EXPECT_THAT(
      errors,
      HasSubstr("the loss is NaN or infinite: variable \"loss\" holds a NaN or an infinite value in the "
                "batch of " +
                small.files()[0] + ":385-401 (step 12); slot \"ones\" of " + small.files()[0] + ":401 holds nan"));
  EXPECT_THAT(errors, HasSubstr("look at that input, lower the learning rate, or clip gradients"));
  EXPECT_THAT(errors, HasSubstr("the checkpoint of step 10 is from before that: --resume=auto goes on from it"));
  EXPECT_FALSE(std::filesystem::exists(out + "/model"));
  EXPECT_TRUE(std::filesystem::exists(out + "/checkpoints/step-000000000010"));
  EXPECT_FALSE(std::filesystem::exists(out + "/checkpoints/step-000000000013"));
}

TEST(NanOfALoop, EndsTheRunAtItsRound) {
  const ReaderJob points(100);
  {
    std::ofstream out(points.file(1), std::ios::app);
    for (int k = 0; k < 8; ++k) out << "nan,";
    out << "0\n";
  }
  // The roles that Paddle gives operators, and a program that was written without them.
  const std::string gradient = "outputs { parameter: \"Out\" arguments: \"cost@GRAD\" }";
  for (const std::string role : {" attrs { name: \"op_role\" type: INT i: 257 }", ""}) {
    const std::string job = points.Copy("multi_pass", "", {{gradient, gradient + role}});
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + points.folder() + "/out"});
    EXPECT_EQ(trainer.Wait(), 3);
    EXPECT_THAT(trainer.errors(), HasSubstr("the loss is NaN or infinite: variable \"cost\" holds a NaN or an infinite "
                                            "value at step 6"));
  }
}

// Shared parameters take the NaN to the other worker's batch, whose lines are sound: whoever failed first, it is not
// those.
TEST(NanOfALine, IsBlamedNotTheBatchThatTheOtherWorkerHadMeanwhile) {
  const SmallJob small(4000, 1);
  std::string lines = ReadFile(small.files()[0]).value();
  size_t at = 0;
  for (int i = 0; i < 400; ++i) at = lines.find('\n', at) + 1;
  lines.insert(at, std::string(kNanLine) + "\n");
  std::ofstream(small.files()[0]) << lines;
  const std::string job = DenseJob(small, "thread_num: 2");
  for (int run = 0; run < 10; ++run) {
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + small.folder() + "/out"});
    ASSERT_EQ(trainer.Wait(), 3);
    ASSERT_THAT(trainer.errors(), HasSubstr("; slot \"ones\" of " + small.files()[0] + ":401 holds nan")) << run;
  }
}

TEST(NanOfALine, LeavesTheModelsOfEarlierPassesAlone) {
  const SmallJob small(600, 2);
  Append(small.files()[1], kNanLine);
  const std::string job =
      DenseJob(small, "update_mode: SERIAL incremental { pass { name: \"good\" filelist: \"" + small.files()[0] +
                          "\" } pass { name: \"bad\" filelist: \"" + small.files()[1] + "\" } }");
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("slot \"ones\" of " + small.files()[1] + ":301 holds nan"));
  EXPECT_TRUE(std::filesystem::exists(out + "/models/good"));
  EXPECT_FALSE(std::filesystem::exists(out + "/models/bad"));
  EXPECT_FALSE(std::filesystem::exists(out + "/model"));
}

// Every id occurs once: the loss of each line is that of a row from before its update.
TEST(ParametersThatAreNotFinite, TakeNoGoodModelsPlace) {
  const SmallJob small(40, 1);
  const std::string job = small.CountingJob("update_mode: SERIAL");
  const std::string out = small.folder() + "/out";
  Process good("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  ASSERT_EQ(good.Wait(), 0) << good.errors();
  const std::vector<std::string> model = FolderContent(out + "/model");
  const std::vector<std::string> checkpoints = FolderContent(out + "/checkpoints");
  Process wild("trainer",
               {"--trainer_desc=" + job, "--output_dir=" + out, "--set=model.table[0].optimizer.sgd.lr=3e38"});
  EXPECT_EQ(wild.Wait(), 3);
  EXPECT_THAT(wild.errors(), HasSubstr("there are NaN or infinite values in what was trained:\n  \"t\": 40 of 40 rows, "
                                       "the first is that of key 1\nnothing of it is saved"));
  EXPECT_EQ(FolderContent(out + "/model"), model);
  EXPECT_EQ(FolderContent(out + "/checkpoints").size(), checkpoints.size());

  Process allowed("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--set=allow_non_finite=true",
                              "--set=model.table[0].optimizer.sgd.lr=3e38"});
  EXPECT_EQ(allowed.Wait(), 0);
  EXPECT_THAT(allowed.errors(), HasSubstr("warning: there are NaN or infinite values in what was trained:"));
  EXPECT_NE(FolderContent(out + "/model"), model);

  Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0]});
  EXPECT_EQ(predictor.Wait(), 3);
  EXPECT_THAT(predictor.output(), HasSubstr("inf\ninf\n"));
  EXPECT_THAT(predictor.errors(), HasSubstr("warning: " + small.files()[0] + ":1 has the score inf"));
  EXPECT_THAT(predictor.errors(),
              HasSubstr("40 of 40 scores are NaN or infinite; the first: " + small.files()[0] + ":1"));
  Process accepted("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0], "--allow_non_finite"});
  EXPECT_EQ(accepted.Wait(), 0);
  EXPECT_EQ(accepted.output(), predictor.output());
}

TEST(NanOfALine, IsShownWhereItEntersTheDataStreamedOrHeldInMemory) {
  const SmallJob small(40, 1);
  Append(small.files()[0], "1 1 1 inf 1 9999 1 7 2 9 9");
  Append(small.files()[0], kNanLine);
  // The loss does not read the slot.
  const std::string job = small.DeepJob("update_mode: SERIAL");
  for (const char* dataset : {"QueueDataset", "InMemoryDataset"}) {
    Process trainer("trainer", {"--trainer_desc=" + job, "--set=dataset.class_name=\"" + std::string(dataset) + "\""});
    EXPECT_EQ(trainer.Wait(), 0);
    const std::string errors = trainer.errors();
    EXPECT_THAT(errors, HasSubstr("warning: " + small.files()[0] +
                                  ":41: a value of a float slot is NaN or infinite, and is taken as it is"));
    EXPECT_THAT(errors, testing::Not(HasSubstr(":42: ")));
    EXPECT_THAT(errors, HasSubstr("odd values  2 nan or infinite ones"));
  }
}

TEST(AllowNonFinite, GoesOnAndCounts) {
  const SmallJob small(400, 1);
  Append(small.files()[0], kNanLine);
  const std::string job = DenseJob(small, "update_mode: SERIAL epochs: 2 allow_non_finite: true");
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(trainer.errors(),
              HasSubstr("losses      of 14 batches were NaN or infinite, the first: variable \"loss\""));
  const std::string report = ReadFile(out + "/run.json").value();
  EXPECT_THAT(report, HasSubstr("\"non_finite_losses\": {"));
  EXPECT_THAT(report, HasSubstr("\"count\": 14"));
}

// Training would stop; an evaluation, or a run that changes nothing, says what it measured.
TEST(MetricsOfNan, AreNanInTheWindowAndTheTotalsThatHaveIt) {
  const SmallJob small(96, 1);
  const std::string job = DenseJob(small, "update_mode: SERIAL");
  std::string lines = ReadFile(small.files()[0]).value();
  // The second of three batches has it.
  size_t at = 0;
  for (int i = 0; i < 40; ++i) at = lines.find('\n', at) + 1;
  const size_t end = lines.find('\n', at);
  lines.replace(at, end - at, kNanLine);
  std::ofstream(small.files()[0]) << lines;
  const std::string out = small.folder() + "/out";
  Process infer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--set=infer=true",
                            "--set=fetch_config.fetch_var_names=[\"batch_logloss\", \"logloss\", \"batch_gauc\"]",
                            "--set=fetch_config.print_period=1"});
  EXPECT_EQ(infer.Wait(), 0) << infer.errors();
  std::istringstream printed(infer.output());
  std::vector<std::string> windows;
  for (std::string line; std::getline(printed, line);) windows.push_back(line.substr(line.find("batch_logloss")));
  ASSERT_EQ(windows.size(), 3u) << infer.output();
  EXPECT_THAT(windows[0], testing::Not(HasSubstr("logloss[1]:[nan]")));
  EXPECT_THAT(windows[1], HasSubstr("batch_logloss[1]:[nan], logloss[1]:[nan], batch_gauc[1]:[nan]"));
  EXPECT_THAT(windows[2], testing::Not(HasSubstr("batch_logloss[1]:[nan]")));
  EXPECT_THAT(windows[2], HasSubstr(", logloss[1]:[nan]"));
  EXPECT_THAT(infer.errors(), HasSubstr("auc nan  logloss nan  calibration nan  gauc nan"));
  EXPECT_THAT(infer.errors(), HasSubstr("nan: of 1 examples the prediction or the label is NaN or infinite"));
  const std::string report = ReadFile(out + "/infer.json").value();
  EXPECT_THAT(report, HasSubstr("\"auc\": null"));
  EXPECT_THAT(report, HasSubstr("\"non_finite_rows\": 1"));
}

}  // namespace
}  // namespace millrace
