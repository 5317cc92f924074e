// feature_importance on a log whose labels follow one slot: the report says so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::HasSubstr;

/// The number behind `key` in the object of the group `name`.
double Number(const std::string& json, const std::string& name, const std::string& key) {
  const size_t group = json.find("\"name\": \"" + name + "\"");
  if (group == std::string::npos) {
    ADD_FAILURE() << "no group " << name << " in " << json;
    return 0;
  }
  return std::stod(json.substr(json.find("\"" + key + "\":", group) + key.size() + 3));
}

class ImportanceJob : public testing::TestWithParam<std::string> {};

TEST_P(ImportanceJob, TheSlotThatLabelsFollowIsWorthMost) {
  const SmallJob small(6000);
  const std::string job = small.DeepJob(
      "update_mode: SERIAL epochs: 6 output { tensorboard: false } dataset { class_name: \"" + GetParam() + "\" } " +
      "eval { filelist: \"" + small.folder() + "/part-2\" every_epochs: 0 }\nfilelist: \"" + small.folder() +
      "/part-0\"\nfeature_importance { slots: \"A\" slots: \"uid\" group { name: \"both\" slots: [\"A\", \"B\"] } }\n");
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(trainer.errors(), HasSubstr("feature importance: auc "));
  const std::string json = ReadFile(out + "/feature_importance.json").value();
  EXPECT_GT(Number(json, "A", "drop"), 0.2) << json;
  EXPECT_GT(Number(json, "A", "error"), 0);
  EXPECT_LT(Number(json, "A", "error"), 0.05);
  EXPECT_EQ(Number(json, "uid", "drop"), 0) << "no layer reads it";
  EXPECT_GT(Number(json, "both", "drop"), 0.2);
  EXPECT_NEAR(Number(json, "both", "drop"), Number(json, "A", "drop"), 0.15);

  // A finished run answers again, with the same numbers.
  Process again("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto"});
  ASSERT_EQ(again.Wait(), 0) << again.errors();
  const std::string repeated = ReadFile(out + "/feature_importance.json").value();
  EXPECT_EQ(json.substr(json.find("\"groups\"")), repeated.substr(repeated.find("\"groups\"")));
}

/// A program names no metric: the job does, and evaluation leaves the program's variables alone.
TEST(ImportanceOfAProgram, IsMeasuredByTheMetricsOfTheJob) {
  const SmallJob small(6000);
  const std::string folder = small.folder();
  const std::string head = "update_mode: SERIAL epochs: 6\nfilelist: \"" + folder + "/part-0\"\n";
  const std::string model_job = small.DeepJob(head);
  const std::unique_ptr<JobSession> job = MakeJob(model_job, "");
  std::ofstream(folder + "/main") << job->job().model().main.SerializeAsString();
  std::ofstream(folder + "/startup") << job->job().model().startup.SerializeAsString();
  const std::string model_text = ReadFile(model_job).value();
  const auto write = [&](const std::string& name, const std::string& metric, const std::string& more) {
    std::ofstream(folder + "/" + name) << model_text.substr(0, model_text.find("model {")) << head << more
                                       << "program { main: \"" << folder << "/main\" startup: \"" << folder
                                       << "/startup\" save_dir: \"" << folder << "/saved_" << name << "\" }\n"
                                       << metric << "\n";
    return folder + "/" + name;
  };
  const std::string metric = "model { metric { kind: AUC in: \"y\" label: \"label\" } }";
  const std::string path = write("program", metric,
                                 "eval { filelist: \"" + folder + "/part-2\" every_epochs: 1 }\n" +
                                     "feature_importance { slots: \"A\" slots: \"uid\" }\n");
  Process trainer("trainer", {"--trainer_desc=" + path, "--output_dir=" + folder + "/out"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(trainer.errors(), HasSubstr("feature importance: auc "));
  const std::string json = ReadFile(folder + "/out/feature_importance.json").value();
  EXPECT_GT(Number(json, "A", "drop"), 0.2) << json;
  EXPECT_EQ(Number(json, "uid", "drop"), 0) << "no layer reads it";

  // What its gradients begin at is its loss.
  const std::string run = ReadFile(folder + "/out/run.json").value();
  EXPECT_THAT(run, testing::ContainsRegex("\"loss\": [0-9]")) << run;
  const std::string stopping = "--set=eval={ filelist: \"" + folder + "/part-2\" early_stopping { metric: \"loss\" } }";
  Process watched("trainer", {"--trainer_desc=" + path, "--output_dir=" + folder + "/watched", stopping,
                              "--set=feature_importance.metric=\"loss\""});
  ASSERT_EQ(watched.Wait(), 0) << watched.errors();
  EXPECT_THAT(watched.errors(), HasSubstr("feature importance: loss 0."));

  Process plain("trainer", {"--trainer_desc=" + write("plain", "", ""), "--output_dir=" + folder + "/plain_out"});
  ASSERT_EQ(plain.Wait(), 0) << plain.errors();
  for (const char* parameter : {"h.w_0", "y.w_0", "y.b_0"}) {
    EXPECT_EQ(ReadFile(folder + "/saved_program/" + parameter).value(),
              ReadFile(folder + "/saved_plain/" + parameter).value())
        << parameter;
  }

  Process mistaken("trainer", {"--trainer_desc=" +
                                   write("mistaken", "model { metric { kind: AUC in: \"yy\" label: \"label\" } }", ""),
                               "--output_dir=" + folder + "/unused"});
  EXPECT_EQ(mistaken.Wait(), 2);
  EXPECT_THAT(mistaken.errors(), HasSubstr("there is no variable \"yy\""));
}

INSTANTIATE_TEST_SUITE_P(Classes, ImportanceJob, testing::Values("QueueDataset", "InMemoryDataset"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace millrace
