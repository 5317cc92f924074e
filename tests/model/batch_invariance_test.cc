// A row's prediction must not depend on the batch that it stands in: every job of configs/, fused and not.
#include <gtest/gtest.h>

#include "click_batches.h"
#include "kernels/packed_weights.h"
#include "model_run.h"

namespace millrace {
namespace {

constexpr int kScored = 150;

class BatchInvariance : public ::testing::TestWithParam<const char*> {};

/// The predictions of the rows by so many at a time, row by row, over the parameters of `trained`.
std::vector<float> Predicted(ModelRun& trained, const Executable& executable, const SlotSchema& schema,
                             const std::string& text, int batch_size, PackedWeights* weights) {
  FrameOptions options;
  options.read_only = true;
  options.packed_weights = weights;
  const auto frame = Frame::Create(executable, &schema, trained.root(), options);
  EXPECT_TRUE(frame.ok()) << frame.status().ToString();
  std::vector<float> values;
  for (const auto& batch : ParseBatches(schema, text, batch_size)) {
    RunContext context;
    context.batch = batch.get();
    context.rows = batch->rows();
    EXPECT_TRUE((*frame)->Run(context).ok());
    const auto& tensor = (*frame)->Find(trained.model().prediction)->Get<Tensor>();
    values.insert(values.end(), tensor.data<float>(), tensor.data<float>() + tensor.numel());
  }
  return values;
}

TEST_P(BatchInvariance, OfTheScores) {
  const TrainerDesc job = ReadJob(GetParam());
  const SlotSchema schema = *SlotSchema::Create(job.data_desc());
  ModelRun trained(job.model(), schema, {});
  for (const auto& batch : ParseBatches(schema, PipedClickText(640, job), 64)) trained.Train(*batch);
  const std::string text = PipedClickText(kScored, job);
  std::vector<float> fused;
  for (const bool fuse : {true, false}) {
    CompileOptions options;
    options.fuse = fuse;
    options.forward_only = true;
    options.fetches = {trained.model().prediction};
    const auto executable = Executable::Compile(trained.model().test, BuiltinOps(), options);
    ASSERT_TRUE(executable.ok()) << executable.status().ToString();
    const std::vector<float> whole = Predicted(trained, **executable, schema, text, kScored, nullptr);
    ASSERT_EQ(whole.size() % kScored, 0U);
    ASSERT_FALSE(whole.empty());
    if (fuse) fused = whole;
    EXPECT_EQ(whole, fused);
    PackedWeights weights;
    for (const int batch_size : {1, 2, 3, 7, 31, 64, kScored}) {
      EXPECT_EQ(Predicted(trained, **executable, schema, text, batch_size, nullptr), whole) << batch_size;
      EXPECT_EQ(Predicted(trained, **executable, schema, text, batch_size, &weights), whole) << batch_size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, BatchInvariance,
                         ::testing::Values("autoint", "bst", "dcn", "dcn_v2", "deepfm", "dien", "din", "esmm",
                                           "fibinet", "fm", "lr", "mmoe", "ple", "shared_bottom", "wide_deep",
                                           "xdeepfm"),
                         [](const auto& job) { return std::string(job.param); });

}  // namespace
}  // namespace millrace
