// feature_importance on a log whose labels follow one slot: the report says so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

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

INSTANTIATE_TEST_SUITE_P(Classes, ImportanceJob, testing::Values("QueueDataset", "InMemoryDataset"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace millrace
