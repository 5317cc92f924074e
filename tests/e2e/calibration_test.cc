// eval.calibration: found by the evaluation of the model that is saved, and a part of it wherever it scores.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "e2e/process.h"
#include "e2e/small_job.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Ended {
  int code = 0;
  std::string errors;
};

Ended Train(const SmallJob& small, const std::string& out, std::vector<std::string> sets,
            const std::string& extra = "") {
  std::vector<std::string> arguments = {
      "--trainer_desc=" + small.DeepJob("eval { filelist: '" + small.files()[0] + "' calibration { } }\n" + extra),
      "--output_dir=" + out};
  for (const std::string& set : sets) arguments.push_back(set.starts_with("--") ? set : "--set=" + set);
  Process trainer("trainer", arguments);
  const int code = trainer.Wait();
  return {code, trainer.errors()};
}

/// Scores the first file; what predictor says of the scores.
std::string Score(const SmallJob& small, const std::string& model, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--model_dir=" + model, "--input=" + small.files()[0],
                                        "--output=" + small.folder() + "/scores"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Process predictor("predictor", arguments);
  EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
  return predictor.errors();
}

// Few negatives, uncorrected: what is predicted is too high, and only the calibration can tell.
const std::vector<std::string> kTooHigh = {"model.downsample={ label: \"label\" rate: 0.2 correction: WEIGHT }",
                                           "model.loss.class_weight=[1, 30]", "epochs=1"};

TEST(Calibration, TheSavedModelScoresWhatRunJsonSays) {
  const SmallJob small(1500, 2);
  for (const std::string kind : {"PLATT", "ISOTONIC"}) {
    const std::string out = small.folder() + "/" + kind;
    std::vector<std::string> sets = kTooHigh;
    sets.push_back("eval.calibration[0].kind=" + kind);
    const Ended run = Train(small, out, sets);
    ASSERT_EQ(run.code, 0) << run.errors;
    EXPECT_THAT(run.errors, HasSubstr(kind == "PLATT" ? "  calibrated  slope " : "  calibrated  by "));
    const std::string json = ReadFile(out + "/run.json").value();
    const double after = NumberBehind(json, "\"logloss\": ", "\"after\"");
    EXPECT_LT(after, NumberBehind(json, "\"logloss\": ", "\"before\"")) << json;
    EXPECT_GT(NumberBehind(json, "\"calibration\": ", "\"before\""), 1.2);
    EXPECT_NEAR(NumberBehind(json, "\"calibration\": ", "\"after\""), 1, 0.02);
    const std::string said = Score(small, out + "/model");
    EXPECT_NEAR(NumberBehind(said, "logloss "), after, 1e-5) << said;
    EXPECT_NEAR(NumberBehind(said, "calibration "), 1, 0.02);
    Process inspect("inspect", {"model", "--model_dir=" + out + "/model"});
    ASSERT_EQ(inspect.Wait(), 0) << inspect.errors();
    EXPECT_THAT(inspect.output(),
                AllOf(HasSubstr("predicts     y.calibrated, label label\n"), HasSubstr("calibrated   " + kind + ", ")));
  }
}

TEST(Calibration, ComesBehindTheCorrectionOfDownsample) {
  const SmallJob small(3000, 2);
  const std::string out = small.folder() + "/out";
  const Ended run = Train(small, out, {"model.downsample={ label: \"label\" rate: 0.2 }", "epochs=4"});
  ASSERT_EQ(run.code, 0) << run.errors;
  const std::string json = ReadFile(out + "/run.json").value();
  EXPECT_NEAR(NumberBehind(json, "\"calibration\": ", "\"before\""), 1, 0.15);
  EXPECT_NEAR(NumberBehind(Score(small, out + "/model"), "calibration "), 1, 0.01);
}

TEST(Calibration, IsOfTheBestModelWhereThatIsSaved) {
  const SmallJob small(1200, 1);
  const std::string out = small.folder() + "/out";
  std::vector<std::string> sets = {"epochs=9",
                                   "eval.early_stopping={ metric: \"logloss\" patience: 2 min_delta: 0.9 }"};
  const Ended run = Train(small, out, sets);
  ASSERT_EQ(run.code, 0) << run.errors;
  ASSERT_THAT(run.errors, HasSubstr(": kept)")) << "the last model must not be the best";
  const std::string json = ReadFile(out + "/run.json").value();
  const double after = NumberBehind(json, "\"logloss\": ", "\"after\"");
  EXPECT_NEAR(NumberBehind(json, "\"logloss\": ", "\"before\""), NumberBehind(json, "\"logloss\": ", "\"eval\""), 1e-6);
  EXPECT_NEAR(NumberBehind(Score(small, out + "/model"), "logloss "), after, 1e-5);
  // A run that is over makes the same model again.
  Score(small, out + "/model");
  const std::string scores = ReadFile(small.folder() + "/scores").value();
  sets.push_back("--resume=auto");
  const Ended again = Train(small, out, sets);
  ASSERT_EQ(again.code, 0) << again.errors;
  Score(small, out + "/model");
  EXPECT_EQ(ReadFile(small.folder() + "/scores").value(), scores);
}

// It was saved with the map of the last one, which is another model.
TEST(Calibration, AStopWhileTheBestModelIsMeasuredAgainSavesNothing) {
  const SmallJob small(600, 1);
  const std::string& folder = small.folder();
  const std::string out = folder + "/out";
  // Of the evaluations of the run that goes on, the second one waits.
  std::ofstream(folder + "/read.sh") << "if [ -e first ]; then touch second; sleep 60\n"
                                        "elif [ -e armed ]; then touch first; fi\ncat\n";
  std::vector<std::string> sets = {"epochs=9", "eval.early_stopping={ metric: \"logloss\" patience: 2 min_delta: 0.9 }",
                                   "data_desc.pipe_command=\"cd " + folder + " && sh read.sh\""};
  ASSERT_EQ(Train(small, out, sets).code, 0);
  const std::string model = ReadFile(out + "/model/MODEL").value();
  std::filesystem::remove_all(out + "/model");
  std::ofstream(folder + "/armed") << "";
  std::vector<std::string> arguments = {
      "--trainer_desc=" + small.DeepJob("eval { filelist: '" + small.files()[0] + "' calibration { } }\n"),
      "--output_dir=" + out, "--resume=auto"};
  for (const std::string& set : sets) arguments.push_back("--set=" + set);
  Process stopped("trainer", arguments);
  for (int i = 0; i < 600 && !std::filesystem::exists(folder + "/second"); ++i) usleep(50'000);
  stopped.Signal(SIGINT);
  stopped.Wait();
  EXPECT_TRUE(std::filesystem::exists(folder + "/second")) << stopped.errors();
  EXPECT_FALSE(std::filesystem::exists(out + "/model")) << stopped.errors();
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"interrupted\": true"));
  for (const char* file : {"/armed", "/first", "/second"}) std::filesystem::remove(folder + file);
  Process again("trainer", arguments);
  ASSERT_EQ(again.Wait(), 0) << again.errors();
  EXPECT_EQ(ReadFile(out + "/model/MODEL").value(), model);
}

TEST(Calibration, OfSeveralLossesEachHasItsOwn) {
  const SmallJob small(1200, 1);
  const std::string out = small.folder() + "/out";
  const std::vector<std::string> sets = {
      "model.loss={ name: \"a\" kind: LOG_LOSS in: \"y\" label: \"label\" }",
      "model.loss+={ name: \"b\" kind: LOG_LOSS in: \"y\" label: \"label\" class_weight: [1, 3] }",
      "model.loss+={ name: \"c\" kind: LOG_LOSS in: \"y\" label: \"label\" mask: \"ones\" }", "epochs=2",
      "fetch_config={ }"};
  const Ended run = Train(small, out, sets);
  ASSERT_EQ(run.code, 0) << run.errors;
  EXPECT_THAT(run.errors, AllOf(HasSubstr("calibrated  a: slope"), HasSubstr("calibrated  b: slope")));
  EXPECT_THAT(Score(small, out + "/model"), HasSubstr("b/calibration 1.00"));
}

TEST(Calibration, WithoutBothLabelsTheModelIsSavedAndTheRunFails) {
  const SmallJob small(600, 2);
  std::istringstream lines(ReadFile(small.files()[0]).value());
  std::ofstream ones(small.folder() + "/ones");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("1 1")) ones << line << "\n";
  }
  ones.close();
  const std::string out = small.folder() + "/out";
  const Ended run = Train(small, out, {"eval.filelist=" + small.folder() + "/ones"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.errors, HasSubstr("trained and saved, but not calibrated: of the evaluation's examples all that "
                                    "count have the label 1: evaluate on some with the other, too"));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"failure\": \"all that count have the label 1"));
  Process inspect("inspect", {"model", "--model_dir=" + out + "/model"});
  ASSERT_EQ(inspect.Wait(), 0);
  EXPECT_THAT(inspect.output(), Not(HasSubstr("calibrated")));
}

TEST(Calibration, IsExportedToOnnxAndRefusedForPaddle) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  for (const char* kind : {"PLATT", "ISOTONIC"}) {
    const Ended run = Train(small, out,
                            {"output={ export { format: ONNX vocabulary: 1000000 } }", "model.table[0].key=ID",
                             std::string("eval.calibration[0].kind=") + kind});
    ASSERT_EQ(run.code, 0) << run.errors;
    EXPECT_THAT(ReadFile(out + "/onnx/offline.onnx").value(), HasSubstr("y.calibrated"));
  }
  const Ended paddle = Train(small, out, {"output={ export { format: PADDLE vocabulary: 1000000 } }"});
  EXPECT_EQ(paddle.code, 2);
  EXPECT_THAT(paddle.errors, HasSubstr("operator \"calibration\" is of Millrace"));
}

TEST(Calibration, WhatNoMapCanBeForIsToldBeforeAnythingIsRead) {
  const SmallJob small(50, 1);
  const std::string losses = "model.loss={ name: \"a\" kind: LOG_LOSS in: \"y\" label: \"label\" }";
  const auto said = [&](std::vector<std::string> sets) {
    sets.insert(sets.begin(), {losses, "model.loss+={ name: \"b\" kind: SQUARED_ERROR in: \"y\" label: \"label\" }",
                               "fetch_config={ }", "--validate_only"});
    const Ended run = Train(small, small.folder() + "/out", sets);
    EXPECT_EQ(run.code, 2);
    return run.errors;
  };
  EXPECT_THAT(said({}), HasSubstr("error: loss \"b\": the prediction of SQUARED_ERROR is a value, and calibrations are "
                                  "of probabilities; name the losses that can be: loss: \"...\""));
  EXPECT_THAT(said({"eval.calibration[0].loss=bb"}), HasSubstr("error: no loss \"bb\"; did you mean \"b\"?"));
  EXPECT_THAT(said({"eval.calibration[0].loss=b"}), HasSubstr("calibrations are of probabilities; leave it out"));
  EXPECT_THAT(said({"eval.calibration[0].loss=a", "eval.calibration+={ loss: \"a\" }"}),
              HasSubstr("error: eval.calibration[0] is of the same loss; leave one out"));
}

TEST(Calibration, DaysEachHaveTheirOwn) {
  const SmallJob small(900, 3);
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("eval { filelist: '" + small.files()[0] +
                                                                "' calibration { } } incremental { "
                                                                "pass { name: 'a' filelist: '" +
                                                                small.files()[1] + "' } pass { name: 'b' filelist: '" +
                                                                small.files()[2] + "' } }"),
                              "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  std::string calibrated;
  for (const char* day : {"a", "b"}) {
    Process inspect("inspect", {"model", "--model_dir=" + out + "/models/" + day});
    ASSERT_EQ(inspect.Wait(), 0) << inspect.errors();
    EXPECT_THAT(inspect.output(), HasSubstr("calibrated   PLATT"));
    EXPECT_NE(inspect.output(), calibrated);
    calibrated = inspect.output();
  }
}

}  // namespace
}  // namespace millrace
