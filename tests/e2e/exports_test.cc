// Exports that cannot be written: known at the first batches where they can be, and never at the model's cost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

TEST(ExportTest, IdsBeyondTheVocabularyEndTheRunAtItsFirstBatches) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("epochs: 1000\n"), "--output_dir=" + out, "--set",
                              "output.export=[{ format: PADDLE vocabulary: 2 }]"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("is not below vocabulary 2 of the export to " + out + "/paddle"));
  EXPECT_THAT(trainer.errors(), HasSubstr(small.files()[0] + ":"));
}

TEST(ExportTest, IdsBeyondTheVocabularyAreFoundByALook) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  // Behind the rows that are shown.
  std::ofstream(small.files()[0], std::ios::app) << "1 0 1 1 1 601 1 5000 2 1 2\n";
  const std::string job = "--trainer_desc=" + small.DeepJob("");
  for (const char* format : {"PADDLE", "ONNX"}) {
    const std::string wanted = std::string("format: ") + format;
    Process refused("trainer", {job, "--output_dir=" + out, "--validate_only", "--set",
                                "output.export=[{ " + wanted + " vocabulary: 1000 }]"});
    EXPECT_EQ(refused.Wait(), 2) << refused.output();
    EXPECT_THAT(refused.errors(), HasSubstr(small.files()[0] + ":301: id 5000 of slot"));
    EXPECT_THAT(refused.errors(), HasSubstr("is not below vocabulary 1000 of the export to " + out));
    Process taken("trainer", {job, "--output_dir=" + out, "--validate_only", "--set",
                              "output.export=[{ " + wanted + " vocabulary: 5001 }]"});
    EXPECT_EQ(taken.Wait(), 0) << taken.errors();
  }
}

TEST(ExportTest, ThatFailsAtTheEndLeavesModelAndReport) {
  const SmallJob small(600, 1);
  const std::string out = small.folder() + "/out";
  // The only id beyond the vocabulary stands in the last line, behind all batches that are looked at.
  std::ofstream(small.files()[0], std::ios::app) << "1 0 1 1 1 601 1 5000 2 1 2\n";
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + out, "--set",
                              "output.export=[{ format: PADDLE vocabulary: 1000 }]"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("the model is trained and in " + out + ", but not exported: "));
  EXPECT_THAT(trainer.errors(), HasSubstr("1 of them are of ids that are not below vocabulary 1000"));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"export_failures\": ["));
  Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0]});
  EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
}

}  // namespace
}  // namespace millrace
