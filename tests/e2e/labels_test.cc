// Labels that a loss or a metric has no meaning for: refused by a model, counted where Paddle trains on them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "e2e/process.h"
#include "e2e/small_job.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Gives a line of a file another label.
void SetLabel(const std::string& file, int line, const std::string& label) {
  std::string text = ReadFile(file).value();
  size_t at = 0;
  for (int i = 1; i < line; ++i) at = text.find('\n', at) + 1;
  text.replace(at + 2, 1, label);
  std::ofstream(file) << text;
}

/// Writes the programs of a model's job, and a job of them.
std::string ProgramJob(const SmallJob& small, const std::string& model_job, const std::vector<std::string>& overrides) {
  const std::unique_ptr<JobSession> job = MakeJob(model_job, "", overrides);
  const std::string folder = small.folder();
  std::ofstream(folder + "/main") << job->job().model().main.SerializeAsString();
  std::ofstream(folder + "/startup") << job->job().model().startup.SerializeAsString();
  const std::string path = folder + "/program.prototxt";
  const std::string text = ReadFile(model_job).value();
  const size_t model = text.find("model {");
  const size_t fetch = text.find("fetch_config");
  std::ofstream(path) << text.substr(0, model) << "program { main: \"" << folder << "/main\" startup: \"" << folder
                      << "/startup\" }\n"
                      << "filelist: \"" << small.files()[0] << "\"\n"
                      << (fetch == std::string::npos ? "" : "fetch_config { fetch_var_names: \"loss\" }\n");
  return path;
}

TEST(LabelTest, OutsideTheRangeOfALogLossEndsAModelsJobWithItsLine) {
  for (const char* label : {"2", "-1", "nan", "inf"}) {
    const SmallJob small(100, 1);
    SetLabel(small.files()[0], 41, label);
    Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("")});
    EXPECT_EQ(trainer.Wait(), 3) << label;
    EXPECT_THAT(trainer.errors(), HasSubstr("label \"label\" of " + small.files()[0] + ":41 is " + label)) << label;
    EXPECT_THAT(trainer.errors(), HasSubstr("the loss takes 0, 1 and shares between them")) << label;
    Process validate("trainer", {"--trainer_desc=" + small.DeepJob(""), "--validate_only"});
    EXPECT_EQ(validate.Wait(), 3) << label << ": within the rows that are looked at";
    EXPECT_THAT(validate.errors(), HasSubstr(":41 is ")) << label;
  }
}

TEST(LabelTest, ALittleAboveOneIsNotShownAsOne) {
  const SmallJob small(100, 1);
  SetLabel(small.files()[0], 41, "1.0000001");
  Process trainer("trainer",
                  {"--trainer_desc=" + small.DeepJob(""), "--set", "data_desc.multi_slot_desc.slots[0].type=float"});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr(":41 is 1.0000001, and the loss takes 0, 1"));
}

TEST(LabelTest, OfTheEvaluationIsLookedAtToo) {
  const SmallJob small(100, 2);
  SetLabel(small.files()[1], 3, "7");
  const std::string job =
      small.DeepJob("\nfilelist: \"" + small.files()[0] + "\"\neval { filelist: \"" + small.files()[1] + "\" }");
  Process trainer("trainer", {"--trainer_desc=" + job});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("part-1:3 is 7"));
}

TEST(LabelTest, SharesTrainAndAreCountedWhereAnAucTakesThemForClicks) {
  const SmallJob small(100, 1);
  SetLabel(small.files()[0], 7, "0.25");
  SetLabel(small.files()[0], 9, "0.75");
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + out});
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::string first = "metric auc: label \"label\" of " + small.files()[0] + ":7 is 0.25";
  EXPECT_THAT(trainer.errors(), HasSubstr("warning: " + first + ": it is for labels 0 and 1"));
  EXPECT_THAT(trainer.errors(), HasSubstr("odd labels  2 that a metric is not defined for, the first: " + first));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"count\": 2"));

  // Metrics of shares alone have nothing to say of them.
  Process shares("trainer", {"--trainer_desc=" + small.DeepJob(""), "--set=model.metric=[{kind: LOGLOSS}]",
                             "--set=fetch_config.fetch_var_names=[\"loss\"]"});
  EXPECT_EQ(shares.Wait(), 0) << shares.errors();
  EXPECT_THAT(shares.errors(), Not(HasSubstr("label")));
}

TEST(LabelTest, OutsideTheRangeOfAProgramsLossIsCountedAndTrained) {
  const SmallJob small(100, 1);
  SetLabel(small.files()[0], 41, "2");
  const std::string job = ProgramJob(small, small.DeepJob(""), {});
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--set=epochs=2"});
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::string first = "of " + small.files()[0] + ":41 is 2";
  EXPECT_THAT(trainer.errors(), testing::ContainsRegex("warning: label \"label\" " + first + ": outside 0 to 1"));
  EXPECT_THAT(trainer.errors(), HasSubstr("odd labels  2 outside 0 to 1"));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"odd_labels\": {"));
}

TEST(ProgramTest, OfFewerBatchesThanAPrintPeriodEndsWithItsValues) {
  const SmallJob small(100, 1);
  const std::string job = ProgramJob(small, small.DeepJob(""), {});
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--set=thread_num=8"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_EQ(trainer.output(), "") << "as in Paddle, whose period is 100";
  EXPECT_THAT(trainer.errors(), testing::ContainsRegex("  last batch  loss 0\\.[0-9]+\n"));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), testing::ContainsRegex("\"fetched\": \\{\n    \"loss\": 0\\.[0-9]"));
  Process silent("trainer", {"--trainer_desc=" + job, "--set=fetch_config={}"});
  ASSERT_EQ(silent.Wait(), 0) << silent.errors();
  EXPECT_THAT(silent.errors(), HasSubstr("fetch_config names nothing to show"));
}

TEST(ProgramTest, AnIdOutsideItsTableIsAnsweredForAProgram) {
  const SmallJob small(100, 1);
  const std::vector<std::string> table = {"model.table[t]={name: \"t\" dim: 4 vocabulary: 5}"};
  for (const char* fuse : {"true", "false"}) {
    Process trainer("trainer", {"--trainer_desc=" + ProgramJob(small, small.DeepJob(""), table),
                                "--set=fuse=" + std::string(fuse)});
    EXPECT_EQ(trainer.Wait(), 3) << fuse;
    EXPECT_THAT(trainer.errors(), testing::ContainsRegex("\"A\", .*part-0:[0-9]+: id [0-9]+ is outside the table \"t\" "
                                                         "\\[5, 4\\], whose rows are for the ids 0 to 4; Paddle ends"))
        << fuse;
    EXPECT_THAT(trainer.errors(), Not(HasSubstr("out_of_range")));
  }
}

}  // namespace
}  // namespace millrace
