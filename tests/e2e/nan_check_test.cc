#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

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
  EXPECT_THAT(errors, HasSubstr("variable \"loss\" holds a NaN or an infinite value in the batch that starts at " +
                                small.files()[0] + ":97 (step 3)"));
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
  EXPECT_THAT(second.errors(),
              HasSubstr("variable \"loss\" holds a NaN or an infinite value in the batch that starts at " + kept +
                        ":1 (step 0)"));
}

}  // namespace
}  // namespace millrace
