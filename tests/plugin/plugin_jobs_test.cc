// Plugins from end to end: named in a job, loaded by every program, and what is said when they fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "framework/tensor.h"
#include "plugin/test_plugins.h"
#include "program/program_files.h"

namespace millrace {
namespace {

using testing::HasSubstr;

/// A job whose hidden layer runs through an operator; `op` is what stands in its `op { ... }`.
std::string WriteJob(const SmallJob& small, const std::string& name, const std::string& op, const std::string& first) {
  const std::string path = small.folder() + "/" + name;
  std::ofstream(path) << first << "\nfilelist: \"" << small.folder() << R"(/part-*"
update_mode: SERIAL
data_desc {
  batch_size: 32
  multi_slot_desc {
    slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "ones" type: "float" }
    slots { name: "uid" type: "uint64" }
    slots { name: "A" type: "uint64" is_used: true }
    slots { name: "B" type: "uint64" is_used: true }
  }
}
model {
  table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.05 } } }
  layer { name: "e" embedding { slots: ["A", "B"] table: "t" pool: SUM } }
  layer { name: "h" fc { in: "e" units: 8 } }
  layer { name: "c" op { )"
                      << op << R"( inputs { name: "X" vars: "h" } } }
  layer { name: "y" fc { in: "c" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { adam { lr: 0.01 } }
}
)";
  return path;
}

std::string Plugins(const std::string& name) { return "plugins: \"" + TestPlugin(name) + "\""; }

TEST(PluginJobsTest, AnOperatorOfAPluginTrainsAsTheSameOneOfMillrace) {
  const SmallJob small(600);
  const std::string job =
      WriteJob(small, "job.prototxt", "type: \"soft_clip\" attrs { name: \"limit\" f: 1 }", Plugins("soft_clip"));
  const std::string twin = WriteJob(small, "twin.prototxt", "type: \"tanh\"", "");
  for (const std::string& path : {job, twin}) {
    Process trainer("trainer", {"--trainer_desc=" + path, "--output_dir=" + path + ".out"});
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  }
  const std::string scores = small.folder() + "/scores";
  Process expected("predictor",
                   {"--model_dir=" + twin + ".out/model", "--input=" + small.files()[0], "--output=" + scores});
  ASSERT_EQ(expected.Wait(), 0) << expected.errors();
  const std::vector<std::string> flags = {"--model_dir=" + job + ".out/model", "--input=" + small.files()[0],
                                          "--compare=" + scores, "--tolerance=1e-4"};
  std::vector<std::string> with_plugin = flags;
  with_plugin.push_back("--plugin=" + TestPlugin("soft_clip"));
  Process predictor("predictor", with_plugin);
  EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
  EXPECT_THAT(predictor.errors(), HasSubstr("200 scores agree"));

  Process without("predictor", flags);
  EXPECT_EQ(without.Wait(), 2);
  EXPECT_THAT(without.errors(), HasSubstr("soft_clip: no such operator; the nearest that is supported is \"clip\""));
  EXPECT_THAT(without.errors(), HasSubstr("\n  --plugin=FILE loads the plugin that a model was trained with\n"));
}

TEST(PluginJobsTest, EveryProgramLoadsTheJobsPlugins) {
  const SmallJob small(60);
  const std::string job = WriteJob(small, "job.prototxt", "type: \"soft_clip\"", Plugins("soft_clip"));
  Process validate("trainer", {"--trainer_desc=" + job, "--validate_only"});
  EXPECT_EQ(validate.Wait(), 0) << validate.errors();
  EXPECT_THAT(validate.output(), HasSubstr("the job is valid"));
  Process ops("trainer", {"--trainer_desc=" + job, "--print_ops=fused"});
  EXPECT_EQ(ops.Wait(), 0) << ops.errors();
  EXPECT_THAT(ops.output(), HasSubstr("soft_clip_grad"));
  Process head("inspect", {"head", "--trainer_desc=" + job});
  EXPECT_EQ(head.Wait(), 0) << head.errors();
  Process broken("inspect", {"head", "--trainer_desc=" + job, "--set", "plugins=" + TestPlugin("throws")});
  EXPECT_EQ(broken.Wait(), 2);
  EXPECT_THAT(broken.errors(), HasSubstr("while it registered it threw std::runtime_error: no licence found"));
}

TEST(PluginJobsTest, AFailureStandsAtItsPlaceInTheJob) {
  const SmallJob small(60);
  const std::string job =
      WriteJob(small, "job.prototxt", "type: \"relu\"",
               "plugins: [\"" + TestPlugin("soft_clip") + "\",\n          \"" + TestPlugin("missing_symbol") + "\"]");
  Process trainer("trainer", {"--trainer_desc=" + job, "--validate_only"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr(job + ":2:11: error: plugin \"" + TestPlugin("missing_symbol") +
                                          "\": it cannot be loaded: it needs \"millrace::RegisterOpsOfTomorrow("));

  const std::string typo =
      WriteJob(small, "typo.prototxt", "type: \"soft_clip\"", "plugins: \"" + TestPlugin("soft_clipp") + "\"");
  Process missing("trainer", {"--trainer_desc=" + typo, "--validate_only"});
  EXPECT_EQ(missing.Wait(), 3) << "an input that is not there";
  EXPECT_THAT(missing.errors(), HasSubstr(typo + ":1:10: error: plugins: no file \"soft_clipp.so\" in "));
  EXPECT_THAT(missing.errors(), HasSubstr("did you mean \"soft_clip.so\"?"));
  EXPECT_THAT(missing.errors(), testing::Not(HasSubstr("no operator"))) << "what the plugin would have brought";
}

TEST(PluginJobsTest, WhatAnOperatorThrowsIsReportedByPluginAndPlace) {
  const SmallJob small(60);
  const std::string threw = "plugin \"" + TestPlugin("throwing_op") + "\" threw ";
  for (const std::string where : {"infer", "grad", "bind", "run"}) {
    const std::string job =
        WriteJob(small, where + ".prototxt", "type: \"throwing\" attrs { name: \"where\" s: \"" + where + "\" }",
                 Plugins("throwing_op"));
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + job + ".out"});
    EXPECT_EQ(trainer.Wait(), 2) << trainer.errors();
    EXPECT_THAT(trainer.errors(), HasSubstr("throwing"));
    EXPECT_THAT(trainer.errors(), HasSubstr(threw + (where == "run" ? "what is no std::exception"
                                                                    : "std::out_of_range: thrown at " + where)));
  }
}

TEST(PluginJobsTest, AProgramThatFeedsItselfByThePluginsOperatorsTrains) {
  const TempDir folder = TempDir::Create("mini_loader_job").value();
  const std::string example = std::string(MILLRACE_SOURCE_DIR) + "/examples/mini_loader";
  const std::string saved = folder.path() + "/saved";
  const std::string job = folder.path() + "/job.prototxt";
  std::ofstream(job) << Plugins("mini_loader") << "\nprogram { main: \"" << folder.path() << "/main.pbtxt\" startup: \""
                     << example << "/startup.pbtxt\" save_dir: \"" << saved
                     << "\" }\nfetch_config { fetch_var_names: \"loss\" print_period: 1000 }\n";
  std::string main = ReadFile(example + "/main.pbtxt").value();
  const std::string data = "examples/mini_loader/data";
  ASSERT_NE(main.find(data), std::string::npos);
  std::ofstream(folder.path() + "/main.pbtxt") << main.replace(main.find(data), data.size(), example + "/data");

  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + folder.path() + "/out"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(ReadFile(folder.path() + "/out/run.json").value(), HasSubstr("\"batches\": 4000"));
  EXPECT_THAT(ReadFile(folder.path() + "/out/run.json").value(), HasSubstr("\"examples\": 36000"));
  Scope learned;
  const ProgramDesc startup = ReadProgram(example + "/startup.pbtxt").value();
  const Status loaded = LoadVariables(startup, saved, learned);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_NEAR(learned.Find("w")->Get<Tensor>().data<float>()[0], 2.008087, 0.02);
  EXPECT_NEAR(learned.Find("b")->Get<Tensor>().data<float>()[0], 0.002143, 0.1);
}

}  // namespace
}  // namespace millrace
