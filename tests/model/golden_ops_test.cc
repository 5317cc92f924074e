// The operators of the jobs in configs/ at the three stages of --print_ops, and those that a prediction
// needs, against tests/golden/ops. With
// MILLRACE_WRITE_GOLDEN=1 in the environment the files are written instead of compared.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "job_files.h"
#include "paths.h"
#include "program/block_builder.h"
#include "runtime/executable.h"

namespace millrace {
namespace {

class GoldenOpsTest : public ::testing::TestWithParam<const char*> {};

void Compare(const std::string& job, const std::string& stage, const std::string& text) {
  const std::string path = SourceDir() + "/tests/golden/ops/" + job + "." + stage + ".txt";
  if (std::getenv("MILLRACE_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(text, FileText(path)) << path;
}

std::string Print(const ProgramDesc& program) {
  return PrintOps(std::vector<OpDesc>(program.blocks(0).ops().begin(), program.blocks(0).ops().end()));
}

TEST_P(GoldenOpsTest, AuthoredLoweredFused) {
  const TrainerDesc job = ReadJob(GetParam());
  const Result<SlotSchema> schema = SlotSchema::Create(job.data_desc());
  ASSERT_TRUE(schema.ok()) << schema.status().ToString();
  const Result<CompiledModel> model = CompileModel(job.model(), *schema, BuiltinOps());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  std::vector<OpDesc> authored(model->main.blocks(0).ops().begin(), model->main.blocks(0).ops().end());
  std::erase_if(authored, [](const OpDesc& op) { return !IsAuthored(op); });
  EXPECT_EQ(PrintOps(authored), Print(model->test));
  Compare(GetParam(), "authored", PrintOps(authored));
  Compare(GetParam(), "lowered", Print(model->main));

  CompileOptions options;
  options.fetches = {model->loss, model->prediction};
  const auto fused = Executable::Compile(model->main, BuiltinOps(), options);
  ASSERT_TRUE(fused.ok()) << fused.status().ToString();
  Compare(GetParam(), "fused", PrintOps((*fused)->ops()));

  options.fetches = {model->prediction};
  options.forward_only = true;
  const auto predict = Executable::Compile(model->test, BuiltinOps(), options);
  ASSERT_TRUE(predict.ok()) << predict.status().ToString();
  Compare(GetParam(), "predict", PrintOps((*predict)->ops()));
}

INSTANTIATE_TEST_SUITE_P(Configs, GoldenOpsTest,
                         ::testing::Values("lr", "fm", "deepfm", "dcn", "wide_deep", "shared_bottom", "mmoe", "ple",
                                           "esmm"),
                         [](const auto& job) { return std::string(job.param); });

}  // namespace
}  // namespace millrace
