// model.downsample: which examples stay, and how what was left out is made good.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/sealed_text.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

/// The number behind a key of run.json, from the place of another key on.
double NumberIn(const std::string& json, const std::string& key, const std::string& from = "") {
  const size_t start = from.empty() ? 0 : json.find(from);
  const size_t at = json.find("\"" + key + "\":", start == std::string::npos ? 0 : start);
  if (at == std::string::npos) return -1;
  return std::stod(json.substr(at + key.size() + 3));
}

struct ThinnedRun {
  std::string json;
  std::string errors;
  int code = 0;
};

ThinnedRun RunThinned(const SmallJob& small, const std::string& name, const std::vector<std::string>& overrides,
                      const std::string& extra = "") {
  const std::string out = small.folder() + "/" + name;
  std::vector<std::string> arguments = {"--trainer_desc=" + small.DeepJob(extra), "--output_dir=" + out};
  for (const std::string& assignment : overrides) arguments.push_back("--set=" + assignment);
  Process trainer("trainer", arguments);
  ThinnedRun run;
  run.code = trainer.Wait();
  run.errors = trainer.errors();
  if (run.code == 0) run.json = ReadFile(out + "/run.json").value();
  return run;
}

const std::string kTenth = "model.downsample={ label: \"label\" rate: 0.2 }";

TEST(Downsample, LeavesOutAShareOfTheNegativesAndCorrectsThePrediction) {
  const SmallJob small(3000, 2);
  const std::string eval = "eval { filelist: \"" + small.files()[0] + "\" filelist: \"" + small.files()[1] + "\" }\n";
  for (const char* correction : {"PREDICTION", "WEIGHT"}) {
    const ThinnedRun run = RunThinned(
        small, correction, {kTenth, std::string("model.downsample.correction=") + correction, "epochs=8"}, eval);
    ASSERT_EQ(run.code, 0) << run.errors;
    const double left_out = NumberIn(run.json, "downsampled");
    // Two of three lines are negative, and a fifth of these stays.
    EXPECT_NEAR(left_out, 1600, 120);
    EXPECT_EQ(NumberIn(run.json, "examples"), 8 * (3000 - left_out));
    EXPECT_EQ(NumberIn(run.json, "examples", "\"eval\""), 3000) << "evaluations read every line";
    EXPECT_NEAR(NumberIn(run.json, "calibration", "\"eval\""), 1, 0.12) << correction;
    EXPECT_NEAR(NumberIn(run.json, "calibration", "\"metrics\""), 1, 0.12)
        << correction << ": of the training likewise";
  }
}

TEST(Downsample, TheSavedModelPredictsWhatTheEvaluationMeasured) {
  const SmallJob small(1200, 1);
  const std::string eval = "eval { filelist: \"" + small.files()[0] + "\" }\n";
  for (const char* loss : {"LOG_LOSS", "SIGMOID_CROSS_ENTROPY"}) {
    std::vector<std::string> overrides = {kTenth, "epochs=5"};
    if (std::string(loss) != "LOG_LOSS") {
      overrides.push_back("model.layer[y].fc.act=NONE");
      overrides.push_back("model.loss.kind=SIGMOID_CROSS_ENTROPY");
    }
    const ThinnedRun run = RunThinned(small, loss, overrides, eval);
    ASSERT_EQ(run.code, 0) << run.errors;
    Process predictor("predictor", {"--model_dir=" + small.folder() + "/" + loss + "/model",
                                    "--input=" + small.files()[0], "--output=" + small.folder() + "/scores"});
    ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
    const size_t at = predictor.errors().find("logloss ");
    ASSERT_NE(at, std::string::npos) << predictor.errors();
    EXPECT_NEAR(std::stod(predictor.errors().substr(at + 8)), NumberIn(run.json, "logloss", "\"eval\""), 2e-6) << loss;
  }
}

TEST(Downsample, ThreadsAndDatasetsKeepTheSameExamples) {
  const SmallJob small(2000, 3);
  const ThinnedRun one = RunThinned(small, "one", {kTenth});
  ASSERT_EQ(one.code, 0) << one.errors;
  const double left_out = NumberIn(one.json, "downsampled");
  const ThinnedRun many = RunThinned(small, "many", {kTenth, "thread_num=3", "data_desc.thread_num=3"});
  const ThinnedRun held =
      RunThinned(small, "held",
                 {kTenth, "dataset={ class_name: \"InMemoryDataset\" local_shuffle: true }", "data_desc.thread_num=2"});
  ASSERT_EQ(many.code, 0) << many.errors;
  ASSERT_EQ(held.code, 0) << held.errors;
  EXPECT_EQ(NumberIn(many.json, "downsampled"), left_out);
  EXPECT_EQ(NumberIn(held.json, "downsampled"), left_out);
  EXPECT_EQ(NumberIn(held.json, "examples"), 2000 - left_out);
  EXPECT_EQ(NumberIn(many.json, "examples"), 2000 - left_out);
  const ThinnedRun other = RunThinned(small, "other", {kTenth, "seed=7"});
  EXPECT_NE(NumberIn(other.json, "downsampled"), left_out) << "by chance once in thirty";
}

TEST(Downsample, ARunThatGoesOnKeepsThem) {
  const SmallJob small(900, 1);
  const std::string whole = "epochs: 2 update_mode: SERIAL\n";
  const ThinnedRun once = RunThinned(small, "whole", {kTenth}, whole);
  ASSERT_EQ(once.code, 0) << once.errors;
  ASSERT_EQ(RunThinned(small, "parts", {kTenth, "epochs=1"}, whole).code, 0);
  Process second("trainer", {"--trainer_desc=" + small.DeepJob(whole), "--output_dir=" + small.folder() + "/parts",
                             "--set=" + kTenth, "--resume=auto"});
  ASSERT_EQ(second.Wait(), 0) << second.errors();
  EXPECT_EQ(FolderContent(small.folder() + "/parts/model"), FolderContent(small.folder() + "/whole/model"));
  Process changed("trainer", {"--trainer_desc=" + small.DeepJob(whole), "--output_dir=" + small.folder() + "/parts",
                              "--set=" + kTenth, "--set=model.downsample.rate=0.5", "--set=epochs=3", "--resume=auto"});
  EXPECT_EQ(changed.Wait(), 2);
  EXPECT_THAT(changed.errors(), HasSubstr("model.downsample.rate"));
}

// Two folders, by absolute paths, and one of them by another path.
TEST(Downsample, TheSameExamplesStayWhereverTheFilesLie) {
  const SmallJob here(900, 2);
  const SmallJob there(900, 2);
  const std::string serial = "update_mode: SERIAL\neval { set { name: 'held' share: 0.2 } }\n";
  const std::string memory = "dataset={ class_name: \"InMemoryDataset\" sample_rate: 0.5 }";
  for (const bool in_memory : {false, true}) {
    std::vector<std::string> overrides = {kTenth};
    if (in_memory) overrides.push_back(memory);
    const std::string name = in_memory ? "memory" : "queue";
    ASSERT_EQ(RunThinned(here, name, overrides, serial).code, 0);
    ASSERT_EQ(RunThinned(there, name, overrides, serial).code, 0);
    const std::string by = here.folder() + "/../" + here.folder().substr(here.folder().find_last_of('/') + 1) + "/./";
    std::string named = serial;
    for (const std::string& file : here.files()) {
      named += "filelist: \"" + by + file.substr(file.find_last_of('/') + 1) + "\"\n";
    }
    ASSERT_EQ(RunThinned(here, name + "_by", overrides, named).code, 0);
    const auto model = FolderContent(here.folder() + "/" + name + "/model");
    EXPECT_EQ(FolderContent(there.folder() + "/" + name + "/model"), model) << name;
    EXPECT_EQ(FolderContent(here.folder() + "/" + name + "_by/model"), model) << name;
  }
}

TEST(Downsample, ARunOfAnEarlierCheckpointKeepsItsRuleOfDrawing) {
  const SmallJob small(900, 2);
  const std::string serial = "update_mode: SERIAL\n";
  const std::string sample = "dataset={ class_name: \"InMemoryDataset\" sample_rate: 0.5 }";
  for (const std::string& drawn : {kTenth, sample}) {
    const std::string out = small.folder() + (drawn == sample ? "/sample" : "/thinned");
    const auto run = [&](const char* name, int epochs, bool resumes) {
      std::vector<std::string> arguments = {"--trainer_desc=" + small.DeepJob(serial), "--output_dir=" + out + name,
                                            "--set=" + drawn, "--set=epochs=" + std::to_string(epochs)};
      if (resumes) arguments.push_back("--resume=auto");
      Process trainer("trainer", arguments);
      EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
      return ReadFile(out + name + "/run.json").value();
    };
    run("whole", 3, false);
    run("parts", 1, false);
    // As earlier versions wrote it.
    const std::string said = "lines are drawn by: name of the file\\n";
    for (const auto& entry : std::filesystem::directory_iterator(out + "parts/checkpoints")) {
      const std::string path = entry.path().string() + "/MANIFEST";
      if (entry.is_symlink() || !std::filesystem::exists(path)) continue;
      std::string text = ReadSealedText(path).value();
      ASSERT_THAT(text, HasSubstr(said));
      text.erase(text.find(said), said.size());
      std::ofstream(path) << SealText(text);
    }
    const std::string second = run("parts", 2, true);
    const std::string third = run("parts", 3, true);
    EXPECT_NE(FolderContent(out + "parts/model"), FolderContent(out + "whole/model")) << drawn;
    const std::string counter = drawn == sample ? "sampled_out" : "downsampled";
    EXPECT_GT(NumberIn(second, counter), 100);
    EXPECT_EQ(NumberIn(third, counter), NumberIn(second, counter)) << "and so do those that go on from it";
  }
}

TEST(Downsample, WhatCannotBeMadeGoodIsRefused) {
  const SmallJob small(50, 1);
  const auto refusal = [&](const std::vector<std::string>& overrides) {
    const ThinnedRun run = RunThinned(small, "refused", overrides);
    EXPECT_EQ(run.code, 2) << run.errors;
    return run.errors;
  };
  EXPECT_THAT(refusal({"model.downsample={ label: \"label\" rate: 0 }"}), HasSubstr("rate must be"));
  EXPECT_THAT(refusal({"model.downsample={ label: \"label\" }"}), HasSubstr("downsample needs a rate"));
  EXPECT_THAT(refusal({"model.downsample={ label: \"A\" rate: 0.5 }"}), HasSubstr("slot \"A\" must have one value"));
  EXPECT_THAT(refusal({"model.downsample={ label: \"label\" rate: 0.5 value: 2 }"}), HasSubstr("correction: WEIGHT"));
  EXPECT_THAT(refusal({kTenth, "model.loss.kind=SQUARED_ERROR"}), HasSubstr("SQUARED_ERROR cannot be corrected"));
  EXPECT_THAT(refusal({kTenth, "dataset={ class_name: \"FileInstantDataset\" }"}),
              HasSubstr("model.downsample leaves out examples"));
}

}  // namespace
}  // namespace millrace
