#include "session/trained_scope.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "e2e/small_job.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

CallContext Context() { return {DefaultEnvironment(), SoloProcess(), {}}; }

/// A script: the programs of a job, trained on a scope.
class TrainedScopeTest : public ::testing::Test {
 protected:
  TrainedScopeTest() {
    const std::string file = log_.folder() + "/main.bin";
    const std::string startup_file = log_.folder() + "/startup.bin";
    EXPECT_TRUE(WriteFileAtomically(file, main().SerializeAsString()).ok());
    EXPECT_TRUE(WriteFileAtomically(startup_file, startup().SerializeAsString()).ok());
    TrainerDesc desc = job_->desc();
    desc.clear_model();
    desc.clear_fetch_config();
    desc.mutable_program()->set_main(file);
    desc.mutable_program()->set_startup(startup_file);
    google::protobuf::TextFormat::PrintToString(desc, &run_.text);
    run_.key = 1;
  }
  const ProgramDesc& main() const { return job_->model().main; }
  const ProgramDesc& startup() const { return job_->model().startup; }
  Status Start() { return scope_.RunStartupProgram(Context(), startup(), 1, 1); }
  /// The first weight of a parameter.
  float Weight(const std::string& name) {
    float weight = 0;
    EXPECT_TRUE(scope_
                    .Read(name,
                          [&weight](const Variable* variable) {
                            weight = variable->Get<Tensor>().data<float>()[0];
                            return Status::Ok();
                          })
                    .ok());
    return weight;
  }
  /// Of the first dense parameter.
  std::string Parameter() const {
    for (const VarDesc& var : main().blocks(0).vars()) {
      if (var.is_parameter() && var.type().type() == VarType::LOD_TENSOR) return var.name();
    }
    return "";
  }

  SmallJob log_{60, 1};
  std::shared_ptr<const CompiledJob> job_ = CompileJob(log_.DeepJob("thread_num: 1"), "");
  TrainedScope scope_;
  DatasetRun run_;
  DatasetRunResult result_;
};

TEST_F(TrainedScopeTest, TrainsAndCountsWithoutPython) {
  ASSERT_TRUE(Start().ok());
  const float before = Weight(Parameter());
  const Status status = scope_.Train(Context(), run_, &result_);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(result_.summary.examples, 60);
  EXPECT_EQ(scope_.step(), result_.summary.batches);
  EXPECT_NE(Weight(Parameter()), before);
}

TEST_F(TrainedScopeTest, ACheckpointBringsParametersAndStepsBack) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(scope_.Train(Context(), run_, &result_).ok());
  const float trained = Weight(Parameter());
  const std::string folder = log_.folder() + "/checkpoints";
  ASSERT_TRUE(scope_.SaveCheckpoint(Context(), main(), folder, 2, 1, 1, "args").ok());
  ASSERT_TRUE(Start().ok());
  EXPECT_NE(Weight(Parameter()), trained);
  EXPECT_EQ(scope_.step(), 0);
  const auto restored = scope_.LoadCheckpoint(Context(), main(), folder, 1);
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  ASSERT_TRUE(restored->has_value());
  EXPECT_EQ((*restored)->trainer_args, "args");
  EXPECT_EQ(Weight(Parameter()), trained);
  EXPECT_EQ(scope_.step(), result_.summary.batches);
}

TEST_F(TrainedScopeTest, AFolderWithoutCheckpointsIsNoError) {
  ASSERT_TRUE(Start().ok());
  const auto restored = scope_.LoadCheckpoint(Context(), main(), log_.folder() + "/nowhere", 1);
  ASSERT_TRUE(restored.ok());
  EXPECT_FALSE(restored->has_value());
}

TEST_F(TrainedScopeTest, AnUnreadableJobIsNamed) {
  run_.text = "thread_num: many";
  EXPECT_THAT(scope_.Train(Context(), run_, &result_).message(), HasSubstr("train_from_dataset"));
}

TEST_F(TrainedScopeTest, AValueOfAnotherShapeIsRejected) {
  ASSERT_TRUE(Start().ok());
  const float value = 1;
  const Status status = scope_.Set(Parameter(), DType::kFloat32, Dims{1}, &value);
  EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(status.message(), HasSubstr("the array is float32 [1]"));
}

TEST_F(TrainedScopeTest, AStoppedTrainingIsCancelledAndCounted) {
  ASSERT_TRUE(Start().ok());
  std::stop_source stop;
  stop.request_stop();
  const CallContext context{DefaultEnvironment(), SoloProcess(), stop.get_token()};
  const Status status = scope_.Train(context, run_, &result_);
  EXPECT_TRUE(status.ok() ? result_.interrupted : status.code() == StatusCode::kCancelled) << status.ToString();
  EXPECT_LT(scope_.step(), 60);
}

}  // namespace
}  // namespace millrace
