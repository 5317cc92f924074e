#include "job/compiled_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/small_job.h"
#include "job/job_mistakes.h"
#include "program/var_meta.h"
#include "trainer/default_environment.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kOfASlot = "e.A";

class CompiledJobTest : public testing::Test {
 protected:
  std::shared_ptr<const CompiledJob> Compile(const std::vector<std::string>& overrides) const {
    return CompileJob(small_.DeepJob(""), "", overrides);
  }

  const SmallJob small_{32, 1};
};

TEST_F(CompiledJobTest, HasVariablesOfASlotOnlyWhereTheyAreAskedFor) {
  EXPECT_EQ(FindVar(Compile({})->model().main, kOfASlot), nullptr);
  for (const std::string asks : {"fetch_config.fetch_var_names=", "check_nan_var_names="}) {
    const auto job = Compile({asks + kOfASlot});
    EXPECT_NE(FindVar(job->model().main, kOfASlot), nullptr) << asks;
    EXPECT_TRUE(job->train().vars().contains(kOfASlot)) << asks;
  }
  for (const char* goes_by_operators : {"fuse=false", "hogwild_param.skip_ops=sequence_pool"}) {
    EXPECT_NE(FindVar(Compile({goes_by_operators})->model().main, kOfASlot), nullptr) << goes_by_operators;
  }
}

TEST_F(CompiledJobTest, AWatchedVariableOfASlotIsThere) {
  ConfigRequest request;
  request.file = small_.DeepJob("");
  const auto job = CompiledJob::Create(LoadTrainerDesc(request).value(), DefaultEnvironment(), "", {kOfASlot});
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_TRUE((*job)->train().vars().contains(kOfASlot));
}

// The names of these metrics stood in the compiler of models, and MetricInfo had other ones.
TEST_F(CompiledJobTest, AMetricsEntrySaysWhetherItReadsTheProbabilityOfALogit) {
  ConfigRequest request;
  request.file = small_.DeepJob("");
  request.overrides = {"model.layer[2].fc.act=NONE", "model.loss[0].kind=SIGMOID_CROSS_ENTROPY", "model.metric[0].in=y",
                       "model.metric[1].in=y", "model.metric[2].in=y"};
  const auto read = [&](const Environment& environment) {
    const auto job = CompiledJob::Create(LoadTrainerDesc(request).value(), environment, "");
    EXPECT_TRUE(job.ok()) << job.status().ToString();
    std::vector<std::string> variables;
    for (const MetricSpec& spec : (*job)->model().metrics) variables.push_back(spec.kind + " " + spec.prediction);
    return variables;
  };
  EXPECT_THAT(read(DefaultEnvironment()),
              ElementsAre("AUC y", "LOGLOSS prediction", "CALIBRATION prediction", "GAUC prediction"));
  Environment environment = CopyOf(DefaultEnvironment());
  environment.metrics = MetricRegistry();
  for (const auto& [name, doc, info] : DefaultEnvironment().metrics.entries()) {
    MetricInfo mine = info;
    if (name == "AUC") mine.reads = MetricReads::kProbability;
    ASSERT_TRUE(environment.metrics.Add(name, doc, std::move(mine)).ok());
  }
  EXPECT_EQ(read(environment)[0], "AUC prediction");
}

TEST_F(CompiledJobTest, TheNearestNameOfAVariableMayBeASlots) {
  ConfigRequest request;
  request.file = small_.DeepJob("");
  request.overrides = {"check_nan_var_names=e.Ax"};
  const auto job = CompiledJob::Create(LoadTrainerDesc(request).value(), DefaultEnvironment(), "");
  EXPECT_THAT(job.status().message(), HasSubstr("did you mean \"e.A\"?"));
}

TEST_F(CompiledJobTest, ThePaddleModelIsThatOfAJobThatIsNotFused) {
  const auto plain = Compile({"fuse=false"});
  const auto fused = Compile({});
  EXPECT_EQ(plain->PaddleModel({}).value()->test.DebugString(), plain->model().test.DebugString());
  EXPECT_EQ(fused->PaddleModel({}).value()->test.DebugString(), plain->model().test.DebugString());
  EXPECT_NE(fused->model().test.DebugString(), plain->model().test.DebugString());
}

}  // namespace
}  // namespace millrace
