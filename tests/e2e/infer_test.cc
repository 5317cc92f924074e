#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <filesystem>
#include <sstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

std::string Number(const std::string& json, const std::string& key) {
  const size_t at = json.rfind("\"" + key + "\": ");
  if (at == std::string::npos) return "";
  const size_t start = at + key.size() + 4;
  return json.substr(start, json.find_first_of(",\n", start) - start);
}

TEST(Infer, GivesTheScoresOfTheModelAndChangesNothing) {
  const SmallJob small(600, 2);
  const std::string job = small.DeepJob("epochs: 2 update_mode: SERIAL eval { filelist: \"" + small.files()[1] +
                                        "\" } check_nan_var_names: \"loss\"");
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::vector<std::string> before = FolderContent(out + "/checkpoints");
  const std::string run = ReadFile(out + "/run.json").value();
  const std::string metrics = ReadFile(out + "/metrics.jsonl").value();

  Process infer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto", "--set=infer=true",
                            "--set=filelist=[\"" + small.files()[1] + "\"]", "--set=dump_fields=\"y\"",
                            "--set=dump_fields_path=\"" + small.folder() + "/dump\"", "--set=dump_file_num=1"});
  ASSERT_EQ(infer.Wait(), 0) << infer.errors();
  EXPECT_THAT(infer.errors(), HasSubstr("inferred: 300 examples"));
  EXPECT_THAT(infer.output(), HasSubstr("loss[1]:["));
  EXPECT_EQ(FolderContent(out + "/checkpoints"), before);
  EXPECT_EQ(ReadFile(out + "/run.json").value(), run);
  EXPECT_EQ(ReadFile(out + "/metrics.jsonl").value(), metrics);

  // What training's last evaluation said of the same file.
  const std::string report = ReadFile(out + "/infer.json").value();
  const std::string evaluated = run.substr(run.find("\"eval\""), run.find("\"data\"") - run.find("\"eval\""));
  ASSERT_NE(Number(evaluated, "auc"), "");
  EXPECT_EQ(Number(report, "auc"), Number(evaluated, "auc"));

  Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[1]});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  std::istringstream scores(predictor.output());
  std::istringstream dump(ReadFile(small.folder() + "/dump/part-000-00000").value());
  int lines = 0;
  for (std::string score, dumped; std::getline(scores, score); ++lines) {
    ASSERT_TRUE(std::getline(dump, dumped));
    ASSERT_EQ(dumped.rfind("\ty:1:", 0), 0u) << dumped;
    EXPECT_NEAR(std::stod(dumped.substr(5)), std::stod(score), 1e-6) << "line " << lines;
  }
  EXPECT_EQ(lines, 300);
}

TEST(Infer, HasNoGradients) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob("infer: true");
  Process infer("trainer", {"--trainer_desc=" + job, "--set=fetch_config.fetch_var_names=\"h.w_0@GRAD\""});
  EXPECT_EQ(infer.Wait(), 2);
  EXPECT_THAT(infer.errors(), HasSubstr("there is no variable \"h.w_0@GRAD\" to fetch"));
}

TEST(Infer, ReadsTheFilelistOfAnIncrementalJobAndLeavesItsModels) {
  const SmallJob small(600, 2);
  const std::string passes = "incremental { pass { name: \"d0\" filelist: \"" + small.files()[0] + "\" } }\n";
  const std::string job =
      small.DeepJob("update_mode: SERIAL eval { filelist: \"" + small.files()[1] +
                    "\" } checkpoint { keep_best: \"auc\" } output { export { format: PADDLE vocabulary: 600 } }\n" +
                    "feature_importance { slots: \"A\" repeats: 2 }\n" + passes);
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::vector<std::string> before = FolderContent(out);

  const std::vector<std::string> flags = {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto",
                                          "--set=infer=true"};
  Process none("trainer", flags);
  EXPECT_EQ(none.Wait(), 2);
  EXPECT_THAT(none.errors(), HasSubstr("filelist is missing"));

  std::vector<std::string> with_files = flags;
  with_files.push_back("--set=filelist=[\"" + small.files()[1] + "\"]");
  Process infer("trainer", with_files);
  ASSERT_EQ(infer.Wait(), 0) << infer.errors();
  EXPECT_THAT(infer.errors(), HasSubstr("inferred: 300 examples"));
  EXPECT_TRUE(std::filesystem::remove(out + "/infer.json"));
  EXPECT_TRUE(std::filesystem::remove(out + "/infer.jsonl"));
  EXPECT_EQ(FolderContent(out), before);
}

TEST(Infer, MakesNoRowsAndNoParametersMove) {
  const SmallJob small(50, 1);
  const std::string job = small.CountingJob("infer: true dump_fields: \"e\" dump_file_num: 1 dump_fields_path: \"" +
                                            small.folder() + "/dump\"");
  // Two passes over each line: after a trained one the row of a line would no longer be 0.
  Process infer("trainer", {"--trainer_desc=" + job,
                            "--set=filelist=[\"" + small.files()[0] + "\", \"" + small.files()[0] + "\"]"});
  ASSERT_EQ(infer.Wait(), 0) << infer.errors();
  std::istringstream dump(ReadFile(small.folder() + "/dump/part-000-00000").value());
  int lines = 0;
  for (std::string line; std::getline(dump, line); ++lines) EXPECT_EQ(line, "\te:1:0");
  EXPECT_EQ(lines, 100);
  EXPECT_FALSE(std::filesystem::exists(small.folder() + "/out"));
}

}  // namespace
}  // namespace millrace
