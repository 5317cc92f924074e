// With early stopping, and with keep_best, the model that is saved is the one of the best evaluation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "e2e/small_job.h"
#include "trainer/in_process.h"
#include "trainer/job_run.h"
#include "trainer/model_check.h"

namespace millrace {
namespace {

using testing::HasSubstr;

constexpr int kBatchRows = 32;

/// A job whose evaluation set says the contrary of what is trained: the first evaluation is the best.
class BestModelTest : public testing::TestWithParam<const char*> {
 protected:
  BestModelTest() {
    std::ofstream contrary(small_.folder() + "/contrary");
    std::ofstream first(small_.folder() + "/first");
    std::ifstream in(small_.files()[0]);
    int lines = 0;
    for (std::string line; std::getline(in, line); ++lines) {
      if (lines < 10 * kBatchRows) first << line << "\n";
      line[2] = line[2] == '0' ? '1' : '0';  // "1 LABEL ..."
      contrary << line << "\n";
    }
  }
  std::string JobOf(const std::string& text) {
    return small_.DeepJob("update_mode: SERIAL epochs: 3 output { tensorboard: false } eval { filelist: \"" +
                          small_.folder() + "/contrary\" every_steps: 10 " + text);
  }
  Result<RunSummary> Run(const std::string& path, const std::string& name, const std::vector<std::string>& overrides,
                         const std::string& resume = "never") {
    return RunJob(*MakeJob(path, small_.folder() + "/" + name, overrides), resume, "last", {});
  }
  std::vector<std::string> Model(const std::string& name) {
    return FolderContent(small_.folder() + "/" + name + "/model");
  }
  /// What ten batches make of the job.
  std::vector<std::string> ModelAfterTenBatches(const std::string& path) {
    EXPECT_TRUE(Run(path, "ten", {"filelist=[\"" + small_.folder() + "/first\"]", "epochs=1"}).ok());
    return Model("ten");
  }

  const SmallJob small_{32 * 60, 2};
};

TEST_P(BestModelTest, IsSavedNotTheLast) {
  const std::string path = JobOf(GetParam());
  const Result<RunSummary> summary = Run(path, "out", {});
  ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  EXPECT_TRUE(summary->is_best_model);
  EXPECT_EQ(summary->eval.step, 10);
  EXPECT_GT(summary->batches, 10);
  EXPECT_THAT(ClosingBlock(*summary, ""), HasSubstr("(the best, after step 10: kept)"));
  const std::vector<std::string> model = Model("out");
  ASSERT_GE(model.size(), 4u);
  EXPECT_EQ(model, ModelAfterTenBatches(path));

  // Going on from the last checkpoint changes nothing when the run was over; the best is measured again.
  const Result<RunSummary> again = Run(path, "out", {}, "auto");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->run_batches, 0);
  EXPECT_EQ(again->eval.step, 10);
  EXPECT_EQ(again->eval.metrics, summary->eval.metrics);
  EXPECT_EQ(Model("out"), model);
}

INSTANTIATE_TEST_SUITE_P(
    Watched, BestModelTest,
    testing::Values("early_stopping { metric: \"logloss\" patience: 3 } }", "} checkpoint { keep_best: \"auc\" }",
                    "} checkpoint { keep_best: \"loss\" keep: 1 } dataset { class_name: \"InMemoryDataset\" }"));

using BestModelLostTest = BestModelTest;

TEST_F(BestModelLostTest, IsSaidAndTheLastIsKept) {
  const std::string path = JobOf("early_stopping { metric: \"logloss\" patience: 3 } }");
  ASSERT_TRUE(Run(path, "out", {}).ok());
  const std::string checkpoints = small_.folder() + "/out/checkpoints";
  std::filesystem::remove_all(checkpoints + "/" + std::filesystem::read_symlink(checkpoints + "/best").string());
  testing::internal::CaptureStderr();
  const Result<RunSummary> again = Run(path, "out", {}, "auto");
  const std::string errors = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_FALSE(again->is_best_model);
  EXPECT_THAT(errors, HasSubstr("the last model is kept instead"));
  EXPECT_NE(Model("out"), ModelAfterTenBatches(path));
}

TEST_F(BestModelLostTest, OfARunThatGoesOnInAnotherFolderItsOwnBestIsKept) {
  const std::string path = JobOf("early_stopping { metric: \"logloss\" patience: 3 } }");
  ASSERT_TRUE(Run(path, "out", {}).ok());
  testing::internal::CaptureStderr();
  const Result<RunSummary> other = Run(path, "other", {}, small_.folder() + "/out/checkpoints/best");
  const std::string errors = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  EXPECT_THAT(errors, HasSubstr("the best model of the earlier run stays in its folder"));
  EXPECT_TRUE(other->is_best_model);
  EXPECT_EQ(other->eval.step, 20);
}

TEST_F(BestModelLostTest, AFolderIsItsOwnHoweverItIsWritten) {
  const std::string path = JobOf("early_stopping { metric: \"logloss\" patience: 50 } }");
  ASSERT_TRUE(Run(path, "out", {}).ok());
  const std::string newest = small_.folder() + "/out/checkpoints/step-000000000180";
  ASSERT_TRUE(std::filesystem::exists(newest));
  std::filesystem::create_directory_symlink(newest, small_.folder() + "/latest");
  for (const std::string& resume : {newest + "/", small_.folder() + "/latest"}) {
    const Result<RunSummary> again = Run(path, "out", {"epochs=4"}, resume);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_TRUE(again->is_best_model) << resume;
    EXPECT_EQ(again->eval.step, 10) << resume;
  }
}

TEST_F(BestModelLostTest, WithoutAWatchTheLastIsSaved) {
  const std::string path = JobOf("}");
  const Result<RunSummary> summary = Run(path, "out", {});
  ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  EXPECT_FALSE(summary->is_best_model);
  EXPECT_EQ(summary->eval.step, summary->batches);
  EXPECT_NE(Model("out"), ModelAfterTenBatches(path));
}

TEST(CheckToBeSaved, LooksOnceAfterAStep) {
  const SmallJob small(32, 1);
  const std::unique_ptr<JobSession> job = MakeJob(small.DeepJob(""), "");
  ASSERT_TRUE(job->InitParameters().ok());
  RunReport report;
  EXPECT_TRUE(CheckToBeSaved(*job, 7, &report).ok());
  job->root().Find("y.b_0")->GetMutable<Tensor>()->mutable_data<float>()[0] = HUGE_VALF;
  EXPECT_TRUE(CheckToBeSaved(*job, 7, &report).ok()) << "nobody trained since: it is not read again";
  EXPECT_EQ(CheckToBeSaved(*job, 8, &report).code(), StatusCode::kBadData);
  EXPECT_EQ(CheckToBeSaved(*job, 8, &report).code(), StatusCode::kBadData) << "what failed is no less wrong";
}

}  // namespace
}  // namespace millrace
