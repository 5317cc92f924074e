// Plugins from end to end: named in a job, loaded by every program, and what is said when they fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "core/file.h"
#include "core/lower_case.h"
#include "core/sealed_text.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "paths.h"
#include "plugin/test_plugins.h"
#include "program/program_files.h"
#include "runtime/tensor.h"
#include "runtime/variable_files.h"
#include "sanitized.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// How a job reads the lines of `small`.
std::string DataOf(const SmallJob& small) {
  return "\nfilelist: \"" + small.folder() + R"(/part-*"
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
)";
}

/// A job whose hidden layer runs through an operator; `op` is what stands in its `op { ... }`.
std::string WriteJob(const SmallJob& small, const std::string& name, const std::string& op, const std::string& first) {
  const std::string path = small.folder() + "/" + name;
  std::ofstream(path) << first << DataOf(small) << R"(
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

TEST(PluginJobsTest, ADatasetAWorkerAndATrainerOfAPluginAreChosenByName) {
  const TempDir folder = TempDir::Create("own_run").value();
  std::ofstream(folder.path() + "/numbers") << "0 640\n";
  const std::string job = folder.path() + "/job.prototxt";
  const auto run = [&](const std::string& classes) {
    std::ofstream(job) << Plugins("own_run") << "\nfilelist: \"" << folder.path() << "/numbers\"\n"
                       << classes << R"(
update_mode: SERIAL
epochs: 2
data_desc {
  batch_size: 16
  multi_slot_desc {
    slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "n" type: "uint64" is_used: true }
  }
}
model {
  table { name: "t" dim: 1 optimizer { adagrad { lr: 0.5 } } }
  layer { name: "e" embedding { slots: ["n"] table: "t" pool: SUM } }
  layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  metric { kind: AUC in: "y" label: "label" }
  optimizer { sgd { lr: 0.1 } }
}
)";
    return std::make_unique<Process>("trainer", std::vector<std::string>{"--trainer_desc=" + job});
  };
  const std::string dataset = "dataset { class_name: \"CountingDataset\" }";
  const auto whole = run(dataset);
  ASSERT_EQ(whole->Wait(), 0) << whole->errors();
  EXPECT_THAT(whole->errors(), HasSubstr("1280 examples in 80 batches"));
  const auto half = run(dataset + " device_worker_name: \"AlternateWorker\" class_name: \"SpokenTrainer\"");
  ASSERT_EQ(half->Wait(), 0) << half->errors();
  EXPECT_THAT(half->errors(), AllOf(HasSubstr("SpokenTrainer begins"), HasSubstr("SpokenTrainer ends well")));
  EXPECT_THAT(half->errors(), HasSubstr("640 examples in 40 batches"));
  const auto misspelt = run("dataset { class_name: \"CountingDatset\" }");
  EXPECT_EQ(misspelt->Wait(), 2);
  EXPECT_THAT(misspelt->errors(), HasSubstr("did you mean \"CountingDataset\""));
  const auto late = run(dataset + " class_name: \"LateTrainer\"");
  EXPECT_EQ(late->Wait(), 4);
  EXPECT_THAT(late->errors(), HasSubstr("training threw std::runtime_error: no training today"));
  const std::map<std::string, std::string> fields = {{"Dataset", "dataset { class_name: "},
                                                     {"Worker", dataset + " device_worker_name: "},
                                                     {"Trainer", dataset + " class_name: "}};
  for (const auto& [what, field] : fields) {
    const std::string end = what == "Dataset" ? "\" }" : "\"";
    const auto throws = run(field + "\"Throwing" + what + end);
    EXPECT_GT(throws->Wait(), 0);
    EXPECT_THAT(throws->errors(), AllOf(HasSubstr("Throwing"), HasSubstr("no " + LowerCase(what) + " today")));
    const auto makes_none = run(field + "\"No" + what + end);
    EXPECT_EQ(makes_none->Wait(), 2);
    EXPECT_THAT(makes_none->errors(), HasSubstr("\"No" + what + "\": it made none"));
  }
}

/// A job of plugin own_model; what stands in place of parts of its model, by the name of the part.
std::string WriteModelJob(const SmallJob& small, const std::map<std::string, std::string>& parts) {
  std::map<std::string, std::string> model = {
      {"table", "dim: 4 init { uniform: 0.1 }"},
      {"layer", "fc { in: \"e\" units: 8 act: TANH }"},
      {"init", "xavier: true"},
      {"loss", "kind: SIGMOID_CROSS_ENTROPY"},
      {"metric", "kind: AUC"},
      {"first", ""},
  };
  for (const auto& [part, text] : parts) model[part] = text;
  const std::string path = small.folder() + "/model.prototxt";
  std::ofstream(path) << Plugins("own_model") << DataOf(small) << model["first"] << R"(
model {
  table { name: "t" )" << model["table"]
                      << " }\n  layer { name: \"e\" embedding { slots: \"A\" table: \"t\" } }\n  layer { name: \"h\" "
                      << model["layer"] << " }\n  layer { name: \"y\" fc { in: \"h\" units: 1 init { " << model["init"]
                      << " } } }\n  loss { in: \"y\" label: \"label\" " << model["loss"] << " }\n  metric { "
                      << model["metric"] << " }\n  optimizer { adagrad { lr: 0.05 } }\n}\n";
  return path;
}

TEST(PluginJobsTest, ALossALayerAnInitialiserAndAMetricOfAPluginTrainByName) {
  const SmallJob small(600);
  const std::string scores = small.folder() + "/scores";
  const std::map<std::string, std::string> own = {
      {"layer",
       "custom { class_name: \"Gate\" in: \"e\" attrs { name: \"scale\" f: 2 } init { custom { class_name: "
       "\"Alternating\" attrs { name: \"scale\" f: 0.5 } } } }"},
      {"init", "custom { class_name: \"Alternating\" }"},
      {"metric", "class_name: \"SEPARATION\""},
      {"first", "eval { filelist: \"" + small.files()[0] + "\" } checkpoint { keep_best: \"separation\" }"}};
  for (const char* loss : {"kind: SIGMOID_CROSS_ENTROPY", "class_name: \"TwinLoss\""}) {
    std::map<std::string, std::string> parts = own;
    parts["loss"] = loss;
    const std::string job = WriteModelJob(small, parts);
    const std::string out = small.folder() + "/out_" + std::string(1, *loss);
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
    EXPECT_THAT(trainer.errors(), HasSubstr("separation"));
    const bool is_first = *loss == 'k';
    std::vector<std::string> flags = {"--model_dir=" + out + "/model", "--input=" + small.files()[0]};
    flags.push_back((is_first ? "--output=" : "--compare=") + scores);
    if (!is_first) flags.push_back("--tolerance=1e-7");
    Process predictor("predictor", flags);
    EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
  }
}

/// A job of plugin own_optimizer; `optimizer` is what stands in the model's, `vocabulary` in the table.
std::string WriteOptimizerJob(const SmallJob& small, const std::string& optimizer, const std::string& vocabulary) {
  const std::string path = small.folder() + "/optimizer.prototxt";
  std::ofstream(path) << Plugins("own_optimizer") << DataOf(small) << R"(
model {
  table { name: "t" dim: 4 init { uniform: 0.001 } )"
                      << vocabulary << R"( }
  layer { name: "e" embedding { slots: "A" table: "t" pool: SUM } }
  layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { )" << optimizer
                      << R"( }
}
)";
  return path;
}

TEST(PluginJobsTest, AnOptimizerOfAPluginMovesParametersAndGoesOnFromACheckpoint) {
  const SmallJob small(600);
  const std::string tables = "optimizer { sgd { lr: 1e-9 } }";
  const std::string rule = "custom { class_name: \"sign_descent\" lr: 0.5 attrs { name: \"initial_mean\" f: 1e9 } }";
  const std::string out = small.folder() + "/out";
  const std::string job = WriteOptimizerJob(small, rule, tables);
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  Process more("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto", "--set=epochs=3"});
  ASSERT_EQ(more.Wait(), 0) << more.errors();
  Process whole("trainer", {"--trainer_desc=" + job, "--output_dir=" + out + ".whole", "--set=epochs=3"});
  ASSERT_EQ(whole.Wait(), 0) << whole.errors();
  const std::string parameters = "/model/parameters";
  EXPECT_EQ(ReadFile(out + parameters).value(), ReadFile(out + ".whole" + parameters).value());
  // The mean is far above any gradient, so that each of 3 passes of 19 steps takes 0.5 off the bias.
  Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0]});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  std::istringstream lines(predictor.output());
  int rows = 0;
  for (float score = 0; lines >> score; ++rows) EXPECT_NEAR(std::log(score), -3 * 19 * 0.5, 2) << rows;
  EXPECT_EQ(rows, 200);
}

TEST(PluginJobsTest, AnOptimizerOfAPluginMovesTablesWithAVocabulary) {
  const SmallJob small(60);
  const std::string rule = "custom { class_name: \"sign_descent\" lr: 0.25 }";
  Process trainer("trainer", {"--trainer_desc=" + WriteOptimizerJob(small, rule, "vocabulary: 1000000"),
                              "--output_dir=" + small.folder() + "/out"});
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
}

TEST(PluginJobsTest, AnOptimizerThatAPluginHasNotOrDoesNotFitIsNamedAtItsPlace) {
  const SmallJob small(60);
  const auto refusal = [&](const std::string& optimizer, const std::string& table) {
    Process trainer("trainer", {"--trainer_desc=" + WriteOptimizerJob(small, optimizer, table), "--validate_only"});
    EXPECT_EQ(trainer.Wait(), 2) << optimizer;
    return trainer.errors();
  };
  const std::string own = "optimizer { sgd { lr: 1 } }";
  const auto custom = [](const std::string& text) { return "custom { class_name: " + text + " }"; };
  EXPECT_THAT(refusal(custom("\"sign_decent\""), own),
              HasSubstr(":20:36: error: no optimizer \"sign_decent\"; did you mean \"sign_descent\"?"));
  EXPECT_THAT(refusal("custom { lr: 1 }", own),
              HasSubstr("class_name must be the name under which a plugin registers the optimizer"));
  EXPECT_THAT(refusal(custom("\"adam\""), own), HasSubstr("\"adam\" is no class of a plugin: write adam in place"));
  EXPECT_THAT(refusal(custom("\"no_update\""), own), HasSubstr("operator \"no_update\" does not update a parameter"));
  EXPECT_THAT(refusal(custom("\"sign_descent\" lr: 0"), own), HasSubstr("lr must be above 0, not 0"));
  EXPECT_THAT(refusal(custom("\"sign_descent\" attrs { name: \"decoy\" f: 1 }"), own),
              HasSubstr("operator \"sign_descent\" has no attribute \"decoy\"; did you mean \"decay\"?"));
  EXPECT_THAT(refusal(custom("\"sign_descent\""), ""),
              HasSubstr("give the table sgd, adagrad, adam or ftrl, or a vocabulary"));
}

TEST(PluginJobsTest, ATableOfAPluginHoldsTheRowsOfAModel) {
  const SmallJob small(60);
  const std::string job =
      WriteModelJob(small, {{"table", "dim: 1 class_name: \"HalvedTable\" optimizer { sgd { lr: 1e-30 } }"},
                            {"layer", "reduce_sum { in: \"e\" }"},
                            {"loss", "kind: SQUARED_ERROR"},
                            {"metric", "kind: MAE"}});
  std::string text = ReadFile(job).value();
  text.replace(text.find("in: \"y\""), 7, "in: \"h\"");
  text.erase(text.find("  layer { name: \"y\""), text.find("  loss {") - text.find("  layer { name: \"y\""));
  std::ofstream(job) << text;
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + small.folder() + "/out"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  Process predictor("predictor", {"--model_dir=" + small.folder() + "/out/model", "--input=" + small.files()[0]});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  std::istringstream lines(predictor.output());
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) EXPECT_EQ(line, "0.5") << rows;
  EXPECT_EQ(rows, 20);
}

TEST(PluginJobsTest, AModelsPartThatAPluginHasNotOrFailsAtIsNamedAtItsPlace) {
  const SmallJob small(60);
  const auto refusal = [&](const std::string& part, const std::string& text) {
    const std::string job = WriteModelJob(small, {{part, text}});
    Process trainer("trainer", {"--trainer_desc=" + job, "--validate_only"});
    EXPECT_EQ(trainer.Wait(), 2) << text;
    return trainer.errors();
  };
  const auto custom = [](const std::string& name) { return "custom { class_name: \"" + name + "\" in: \"e\" }"; };
  EXPECT_THAT(refusal("layer", custom("Gaet")), HasSubstr(":18:42: error: no layer \"Gaet\"; did you mean \"Gate\"?"));
  EXPECT_THAT(refusal("layer", "custom { class_name: \"Gate\" in: \"e\" attrs { name: \"scal\" f: 2 } }"),
              HasSubstr("class \"Gate\" has no attribute \"scal\"; did you mean \"scale\"?"));
  EXPECT_THAT(refusal("layer", "custom { class_name: \"Gate\" in: \"e\" attrs { name: \"scale\" s: \"2\" } }"),
              HasSubstr("attribute \"scale\" of \"Gate\" is written in the field f"));
  EXPECT_THAT(refusal("layer", "custom { in: \"e\" }"),
              HasSubstr("class_name must be the name under which a plugin registers the layer"));
  EXPECT_THAT(refusal("layer", custom("fc")), HasSubstr("\"fc\" is no class of a plugin: write fc in place of custom"));
  EXPECT_THAT(refusal("layer", custom("SilentLayer")), HasSubstr("was not lowered, and gave no reason"));
  EXPECT_THAT(refusal("layer", custom("EmptyLayer")), HasSubstr("was not lowered, and gave no reason"));
  EXPECT_THAT(refusal("loss", "class_name: \"TwinLos\""), HasSubstr("no loss \"TwinLos\"; did you mean \"TwinLoss\"?"));
  EXPECT_THAT(refusal("loss", "kind: LOG_LOSS class_name: \"TwinLoss\""), HasSubstr("the loss has a kind, too"));
  EXPECT_THAT(refusal("loss", "class_name: \"ThrowingLoss\""),
              HasSubstr("loss of the class \"ThrowingLoss\" threw std::runtime_error: no loss today"));
  EXPECT_THAT(refusal("loss", "class_name: \"UntrueLoss\""),
              AllOf(HasSubstr("gave \"loss.nowhere\" as the loss of each example, but nothing wrote it"),
                    HasSubstr("gave \"prediction.nowhere\" as a prediction, but nothing wrote it")));
  EXPECT_THAT(refusal("loss", "kind: SIGMOID_CROSS_ENTROPY in: \"h\""), HasSubstr("reads one layer, and these are 2"));
  EXPECT_THAT(refusal("init", "custom { class_name: \"Elsewhere\" }"), HasSubstr("does not write \"y.w_0\" alone"));
  EXPECT_THAT(refusal("table", "dim: 4 init { custom { class_name: \"Alternating\" } }"),
              HasSubstr("custom needs a vocabulary"));
  EXPECT_THAT(refusal("metric", "class_name: \"SEPERATION\""), HasSubstr("did you mean \"SEPARATION\"?"));
  EXPECT_THAT(refusal("metric", "class_name: \"NoMetric\""), HasSubstr("making the metric \"NoMetric\": it made none"));
  EXPECT_THAT(refusal("loss", "kind: SIGMOID_CROSS_ENTROPY class_weight: [1, 2] } metric { class_name: \"SEPARATION\""),
              HasSubstr("SEPARATION counts every example once, and the loss weighs them"));
  EXPECT_THAT(refusal("metric", "kind: AUC in: \"prediction.nowhere\""),
              HasSubstr("no layer or slot \"prediction.nowhere\""));
  EXPECT_THAT(refusal("first", "eval { filelist: \"x\" } checkpoint { keep_best: \"separation\" }"),
              HasSubstr("add metric { class_name: \"SEPARATION\" } to it"));
  EXPECT_THAT(refusal("first", "eval { filelist: \"x\" } checkpoint { keep_best: \"nometric\" }"),
              HasSubstr("add metric { class_name: \"NoMetric\" } to it"));
}

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
  EXPECT_THAT(without.errors(),
              HasSubstr("predictor: the model needs the operator \"soft_clip\" of plugin \"soft_clip\", "
                        "which is not loaded\n  --plugin=FILE loads a plugin\n"));
  const std::string said = ReadFile(job + ".out/model/MODEL").value();
  EXPECT_THAT(said, HasSubstr("plugin {\n  name: \"soft_clip\"\n  operators: \"soft_clip\"\n}\n"));
  EXPECT_THAT(said, testing::Not(HasSubstr(TestPluginDir()))) << "a path of this machine";
  EXPECT_THAT(ReadFile(twin + ".out/model/MODEL").value(), testing::Not(HasSubstr("plugin {")));
}

TEST(PluginJobsTest, AnExportRefusesWhatOtherRuntimesDoNotHave) {
  const SmallJob small(60);
  const std::string job = WriteJob(small, "job.prototxt", "type: \"soft_clip\"", Plugins("soft_clip"));
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + job + ".out", "--set",
                              "output.export=[{ format: PADDLE vocabulary: 1000000 }]"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("operator \"soft_clip\" is of plugin \"" + TestPlugin("soft_clip") +
                                          "\", which other runtimes do not have"));
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
  Process list("trainer", {"--trainer_desc=" + job, "--list_ops"});
  EXPECT_EQ(list.Wait(), 0) << list.errors();
  EXPECT_THAT(list.output(), HasSubstr("\nsoft_clip\n"));
  EXPECT_THAT(list.output(), HasSubstr("\n    from plugin " + TestPlugin("soft_clip")));
  Process head("inspect", {"head", "--trainer_desc=" + job});
  EXPECT_EQ(head.Wait(), 0) << head.errors();
  Process broken("inspect", {"head", "--trainer_desc=" + job, "--set", "plugins=" + TestPlugin("throws")});
  EXPECT_EQ(broken.Wait(), 2);
  EXPECT_THAT(broken.errors(), HasSubstr("while it registered it threw std::runtime_error: no licence found"));
}

/// A job of the parser PairFeed; lines are "CLICK;ID;MORE".
std::string WritePairsJob(const TempDir& folder, const std::string& more) {
  for (int part = 0; part < 6; ++part) {
    std::ofstream out(folder.path() + "/part-" + std::to_string(part));
    for (int i = 0; i < 200; ++i) out << (i + part) % 2 << ';' << (i + part) % 2 + 10 << ';' << i << '\n';
  }
  const std::string path = folder.path() + "/job.prototxt";
  std::ofstream(path) << Plugins("pairs") << "\nfilelist: \"" << folder.path() << R"(/part-*"
data_desc {
  name: "PairFeed"
  attrs { name: "separator" value: ";" }
  batch_size: 10
  multi_slot_desc {
    slots { name: "click" type: "float" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "id" type: "uint64" is_used: true }
    slots { name: "more" type: "uint64" is_used: true }
  }
}
model {
  table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.5 } } }
  layer { name: "e" embedding { slots: ["id", "more"] table: "t" pool: SUM } }
  layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "click" }
  optimizer { adam { lr: 0.1 } }
  metric { kind: AUC }
}
)" << more;
  return path;
}

TEST(PluginJobsTest, InspectReadsWhatAPluginOfItsFlagReads) {
  const TempDir folder = TempDir::Create("plugin_inspect").value();
  const std::string pairs = folder.path() + "/a.pairs";
  std::ofstream(pairs) << "PAIR" << std::string("\0\0\x80\x3f\x0a\0\0\0", 8);
  const std::vector<std::string> flags = {"records", "--outputs=float32[-1,1] int64[-1,1]",
                                          "--records=" + folder.path() + "/a.recordio", pairs};
  Process without("inspect", flags);
  EXPECT_EQ(without.Wait(), 2);
  EXPECT_THAT(without.errors(), HasSubstr("a.pairs\": its name does not say its format"));
  std::vector<std::string> with = flags;
  with.push_back("--plugin=" + TestPlugin("pairs"));
  Process records("inspect", with);
  EXPECT_EQ(records.Wait(), 0) << records.errors();
  EXPECT_THAT(records.errors(), HasSubstr("a.recordio: 1 records"));

  // A job that names no plugin: the class of its lines is known by the flag.
  const std::string job = WritePairsJob(folder, "");
  std::string text = ReadFile(job).value();
  text.erase(0, text.find('\n'));
  std::ofstream(job) << text;
  for (const std::string command : {"head", "stats", "convert"}) {
    std::vector<std::string> of_job = {command, "--trainer_desc=" + job, "--output_dir=" + folder.path() + "/binary"};
    Process refused("inspect", of_job);
    EXPECT_EQ(refused.Wait(), 2) << command;
    EXPECT_THAT(refused.errors(), HasSubstr("error: no data feed \"PairFeed\"; there are "));
    EXPECT_THAT(refused.errors(), HasSubstr("; --plugin=FILE loads a plugin\n"));
    of_job.push_back("--plugin=" + TestPlugin("pairs"));
    Process shown("inspect", of_job);
    EXPECT_EQ(shown.Wait(), 0) << command << ": " << shown.errors();
  }
}

TEST(PluginJobsTest, AGradientThatThereIsNotNamesWhoWroteIt) {
  const SmallJob small(60);
  const std::string job = WriteJob(small, "job.prototxt", "type: \"misnamed\"", Plugins("misbehaving"));
  Process trainer("trainer", {"--trainer_desc=" + job, "--validate_only"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("misnamed: its gradient is the operator \"no_such_grad\", says plugin \"" +
                                          TestPlugin("misbehaving") + "\", and there is none"));
}

TEST(PluginJobsTest, AJobThatNamesNoPluginIsToldHowOneIsLoaded) {
  const SmallJob small(60);
  const std::string job = WriteJob(small, "job.prototxt", "type: \"misbehaving\"", "");
  Process trainer("trainer", {"--trainer_desc=" + job, "--validate_only"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(),
              HasSubstr("error: no operator \"misbehaving\"; plugins: \"FILE\" in the job loads a plugin\n"));
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

TEST(PluginJobsTest, EveryPluginThatIsRefusedIsNamedAtItsPlace) {
  const SmallJob small(60);
  const std::string text = small.folder() + "/text.so";
  std::ofstream(text) << "#!/bin/sh\n";
  const std::string twin = small.folder() + "/twin.so";
  std::filesystem::copy_file(TestPlugin("soft_clip"), twin);
  const std::string none = small.folder() + "/none.so";
  std::filesystem::create_directory(none);
  const auto refusal = [&](const std::string& second) {
    const std::string job =
        WriteJob(small, "job.prototxt", "type: \"relu\"", Plugins("soft_clip") + "\nplugins: \"" + second + "\"");
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + small.folder() + "/out"});
    EXPECT_EQ(trainer.Wait(), 2) << second;
    const std::string start = job + ":2:10: error: plugin \"" + second + "\": ";
    EXPECT_THAT(trainer.errors(), HasSubstr(start));
    return trainer.errors().substr(std::min(trainer.errors().find(start) + start.size(), trainer.errors().size()));
  };
  EXPECT_THAT(refusal(TestPlugin("soft_clip")), StartsWith("it is loaded already; name it once"));
  EXPECT_THAT(refusal(small.folder() + "/./twin.so"),
              StartsWith("operator \"soft_clip\" exists already, from plugin \"" + TestPlugin("soft_clip") +
                         "\"\n  operator "));
  EXPECT_THAT(refusal(text), StartsWith("\"" + text + "\" is no shared object"));
  EXPECT_THAT(refusal(none), StartsWith("\"" + none + "\" is a folder, not a file"));
  EXPECT_THAT(refusal(TestPlugin("wrong_abi")),
              StartsWith("it was built for another program:\n  built as      \"millrace plugin, C++: g++ 9.4.0, "));
  EXPECT_THAT(refusal(TestPlugin("no_plugin")), StartsWith("it is no plugin of Millrace"));
  EXPECT_THAT(refusal(TestPlugin("throws")), StartsWith("while it registered it threw std::runtime_error"));
  EXPECT_THAT(refusal(TestPlugin("throws_at_load")), StartsWith("while it was loaded it threw std::runtime_error"));
  EXPECT_THAT(refusal(TestPlugin("fails")), StartsWith("no device on this machine"));
}

TEST(PluginJobsTest, SeveralThreadsReadWithParsersOfTheirOwn) {
  const TempDir folder = TempDir::Create("plugin_threads").value();
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    const std::string job =
        WritePairsJob(folder, "thread_num: 4 epochs: 3 dataset { class_name: \"" + dataset + "\" }");
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + folder.path() + "/" + dataset});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    EXPECT_THAT(ReadFile(folder.path() + "/" + dataset + "/run.json").value(), HasSubstr("\"examples\": 3600"));
    const std::string scores = folder.path() + "/scores";
    Process predictor("predictor", {"--model_dir=" + folder.path() + "/" + dataset + "/model",
                                    "--plugin=" + TestPlugin("pairs"), "--input=" + folder.path() + "/part-0"});
    EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
    EXPECT_EQ(std::count(predictor.output().begin(), predictor.output().end(), '\n'), 200);
  }
  // Whichever thread meets it, the line is named.
  std::ofstream(folder.path() + "/part-3", std::ios::app) << "1;x;3\n";
  Process trainer("trainer", {"--trainer_desc=" + folder.path() + "/job.prototxt"});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("part-3:201:1: field 2: expected a number, found \"x\""));
}

TEST(PluginJobsTest, AModelOfAPluginsParserIsNotScoredWithoutIt) {
  const TempDir folder = TempDir::Create("plugin_parser_model").value();
  const std::string job = WritePairsJob(folder, "");
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + folder.path() + "/out"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  Process predictor("predictor",
                    {"--model_dir=" + folder.path() + "/out/model", "--input=" + folder.path() + "/part-0"});
  EXPECT_EQ(predictor.Wait(), 2);
  EXPECT_THAT(predictor.errors(), HasSubstr("no data feed of the class \"PairFeed\""));
  EXPECT_THAT(predictor.errors(),
              HasSubstr("\n  the model's lines were read by plugin \"pairs\" (version 1.2), which is not loaded\n"
                        "  --plugin=FILE loads a plugin\n"));
  EXPECT_THAT(ReadFile(folder.path() + "/out/model/MODEL").value(),
              HasSubstr("plugin {\n  name: \"pairs\"\n  version: \"1.2\"\n  data_feed: \"PairFeed\"\n}\n"));
}

TEST(PluginJobsTest, APluginOfAnotherVersionWasTakenWithoutAWord) {
  const TempDir folder = TempDir::Create("plugin_version").value();
  const std::string job = WritePairsJob(folder, "");
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + folder.path() + "/out"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::vector<std::string> flags = {"--model_dir=" + folder.path() + "/out/model",
                                          "--plugin=" + TestPlugin("pairs"), "--input=" + folder.path() + "/part-0"};
  Process same("predictor", flags);
  EXPECT_EQ(same.Wait(), 0) << same.errors();
  EXPECT_THAT(same.errors(), testing::Not(HasSubstr("version")));

  const std::string path = folder.path() + "/out/model/MODEL";
  std::string text = ReadSealedText(path).value();
  const std::string noted = "version: \"1.2\"";
  ASSERT_NE(text.find(noted), std::string::npos);
  text.replace(text.find(noted), noted.size(), "version: \"1.1\"");
  ASSERT_TRUE(WriteFileAtomically(path, SealText(text)).ok());
  Process other("predictor", flags);
  EXPECT_EQ(other.Wait(), 0) << other.errors();
  EXPECT_THAT(other.errors(), HasSubstr("warning: the model was saved with plugin \"pairs\" (version 1.1), and plugin "
                                        "\"pairs\" (version 1.2) is loaded: "));
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

/// examples/mini_loader's job in a folder of its own, with `rounds` batches; the job's path.
std::string WriteMiniJob(const TempDir& folder, const std::string& rounds, const std::string& more) {
  const std::string example = SourceDir() + "/examples/mini_loader";
  std::string main = ReadFile(example + "/main.pbtxt").value();
  for (const auto& [from, to] : std::map<std::string, std::string>{
           {"examples/mini_loader/data", example + "/data"}, {"type: FLOAT f: 4000", "type: FLOAT f: " + rounds}}) {
    const size_t at = main.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) main.replace(at, from.size(), to);
  }
  std::ofstream(folder.path() + "/main.pbtxt") << main;
  const std::string job = folder.path() + "/job.prototxt";
  std::ofstream(job) << Plugins("mini_loader") << "\nprogram { main: \"" << folder.path() << "/main.pbtxt\" startup: \""
                     << example << "/startup.pbtxt\" save_dir: \"" << folder.path() << "/saved\" }\n"
                     << more;
  return job;
}

TEST(PluginJobsTest, AProgramWithoutItsPluginIsToldOnceHowOneIsLoaded) {
  const TempDir folder = TempDir::Create("mini_loader_without").value();
  const std::string job = WriteMiniJob(folder, "10", "");
  Process trainer("trainer",
                  {"--trainer_desc=" + job, "--validate_only", "--set", "plugins=" + TestPlugin("soft_clip")});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("MiniReader: no such operator\n"));
  const std::string advice = "; plugins: \"FILE\" in the job loads a plugin\n";
  const size_t at = trainer.errors().find(advice);
  ASSERT_NE(at, std::string::npos) << trainer.errors();
  EXPECT_EQ(trainer.errors().find(advice, at + 1), std::string::npos) << trainer.errors();
}

TEST(PluginJobsTest, AProgramThatFeedsItselfByThePluginsOperatorsTrains) {
  const TempDir folder = TempDir::Create("mini_loader_job").value();
  const std::string job =
      WriteMiniJob(folder, "4000", "fetch_config { fetch_var_names: \"loss\" print_period: 1000 }\n");
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + folder.path() + "/out"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(ReadFile(folder.path() + "/out/run.json").value(), HasSubstr("\"batches\": 4000"));
  EXPECT_THAT(ReadFile(folder.path() + "/out/run.json").value(), HasSubstr("\"examples\": 36000"));
  Scope learned;
  const ProgramDesc startup = ReadProgram(SourceDir() + "/examples/mini_loader/startup.pbtxt").value();
  const Status loaded = LoadVariables(startup, folder.path() + "/saved", learned);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_NEAR(learned.Find("w")->Get<Tensor>().data<float>()[0], 2.008087, 0.02);
  EXPECT_NEAR(learned.Find("b")->Get<Tensor>().data<float>()[0], 0.002143, 0.1);
}

TEST(PluginJobsTest, AnOperatorWithoutAKernelIsNamed) {
  const SmallJob small(60);
  const std::string job = WriteJob(
      small, "job.prototxt", "type: \"throwing\" attrs { name: \"where\" s: \"no kernel\" }", Plugins("throwing_op"));
  Process trainer("trainer", {"--trainer_desc=" + job});
  EXPECT_EQ(trainer.Wait(), 2) << trainer.errors();
  EXPECT_THAT(trainer.errors(),
              HasSubstr("throwing (Out: \"c\"): plugin \"" + TestPlugin("throwing_op") + "\" made no kernel"));
}

TEST(PluginJobsTest, ALoaderThatNeverEndsIsEndedByASignalAndGoneOnFromItsCheckpoint) {
  const TempDir folder = TempDir::Create("mini_loader_signal").value();
  // More rounds than anybody waits for; 10 tell that it is on its way.
  const std::string endless = WriteMiniJob(
      folder, "1e9", "fetch_config { fetch_var_names: \"i\" print_period: 10 } checkpoint { every_steps: 1000000 }\n");
  const std::vector<std::string> flags = {"--trainer_desc=" + endless, "--output_dir=" + folder.path() + "/out",
                                          "--resume=auto"};
  for (int run = 0; run < 2; ++run) {
    Process trainer("trainer", flags);
    std::string line;
    ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
    trainer.Signal(SIGINT);
    EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
    if (run == 1) {
      EXPECT_THAT(trainer.errors(), HasSubstr("going on from"));
    }
  }
}

/// What every file below `folder` holds that a run saved.
std::vector<std::string> Saved(const TempDir& folder) { return FolderContent(folder.path() + "/saved"); }

TEST(PluginJobsTest, ALoaderOfAPluginGoesOnFromACheckpointWhereItHadRead) {
  const TempDir folder = TempDir::Create("mini_loader_resume").value();
  const std::string job = WriteMiniJob(folder, "300", "checkpoint { every_steps: 100 keep: 9 }\n");
  // Batches of 4 of the 9 lines, so that it matters which ones come next.
  std::string main = ReadFile(folder.path() + "/main.pbtxt").value();
  for (const auto& [from, to] :
       std::map<std::string, std::string>{{"dims: 9", "dims: 4"}, {"type: INT i: 9", "type: INT i: 4"}}) {
    for (size_t at = main.find(from); at != std::string::npos; at = main.find(from)) main.replace(at, from.size(), to);
  }
  std::ofstream(folder.path() + "/main.pbtxt") << main;
  const std::vector<std::string> flags = {"--trainer_desc=" + job, "--output_dir=" + folder.path() + "/out"};
  Process whole("trainer", flags);
  ASSERT_EQ(whole.Wait(), 0) << whole.errors();
  const std::vector<std::string> undisturbed = Saved(folder);
  ASSERT_EQ(undisturbed.size(), 3U);
  std::filesystem::remove_all(folder.path() + "/saved");

  std::vector<std::string> resumed = flags;
  resumed.push_back("--resume=" + folder.path() + "/out/checkpoints/step-000000000100");
  Process rest("trainer", resumed);
  ASSERT_EQ(rest.Wait(), 0) << rest.errors();
  EXPECT_THAT(rest.errors(), HasSubstr("going on from"));
  EXPECT_EQ(Saved(folder), undisturbed);

  main.replace(main.find("type: INT i: 4"), 14, "type: INT i: 3");
  std::ofstream(folder.path() + "/main.pbtxt") << main;
  Process other("trainer", resumed);
  EXPECT_EQ(other.Wait(), 2) << other.errors();
  EXPECT_THAT(other.errors(),
              HasSubstr("the state of MiniReader \"record\": batch_size was 4 and is now 3; its state in "
                        "the checkpoint is of what it was, so restore it"));
}

TEST(PluginJobsTest, TheStateOfAnOperatorIsInTheCheckpointsOfADatasetsJob) {
  const SmallJob small(600);
  const std::string out = small.folder() + "/out";
  /// Exit code and what was said.
  const auto run = [&](const std::string& attrs, const std::string& resume, const std::vector<std::string>& more = {}) {
    const std::string job = WriteJob(small, "job.prototxt", "type: \"drift\" " + attrs,
                                     Plugins("stateful") + " epochs: 2 checkpoint { every_steps: 5 keep: 99 }");
    std::vector<std::string> flags = {"--trainer_desc=" + job, "--resume=" + resume, "--output_dir=" + out};
    flags.insert(flags.end(), more.begin(), more.end());
    Process trainer("trainer", flags);
    const int code = trainer.Wait();
    return std::pair(code, trainer.errors());
  };
  const auto whole = run("", "never");
  ASSERT_EQ(whole.first, 0) << whole.second;
  const std::vector<std::string> undisturbed = FolderContent(out + "/model");
  const std::string third = small.folder() + "/third";
  std::filesystem::copy(out + "/checkpoints/step-000000000015", third, std::filesystem::copy_options::recursive);
  const auto resumed = run("", third);
  ASSERT_EQ(resumed.first, 0) << resumed.second;
  EXPECT_EQ(FolderContent(out + "/model"), undisturbed);

  EXPECT_THAT(run("attrs { name: \"rate\" f: 0.5 }", third).second,
              HasSubstr("model.layer[c].op.attrs[rate] was (none) and is now { name: \"rate\" f: 0.5 }"));
  EXPECT_THAT(run("", third, {"--set", "update_mode=HOGWILD", "--set", "thread_num=2"}).second,
              HasSubstr("the checkpoint has no state of the operator drift \"c\" of worker 1: go on with the program"));
  const auto unsaved = run("attrs { name: \"throws\" s: \"save\" }", "never");
  EXPECT_EQ(unsaved.first, 2) << unsaved.second;
  EXPECT_THAT(unsaved.second, HasSubstr("the state of drift \"c\": plugin \"" + TestPlugin("stateful") +
                                        "\" threw std::runtime_error: no room for the state"));
}

// Frames of a pipeline are no workers, and thread_num is not all that says how many there are.
TEST(PluginJobsTest, AStateThatAPipelineLacksIsNamedByItsFrameAndWhatMakesFrames) {
  const SmallJob small(600);
  const std::string job = WriteJob(
      small, "job.prototxt", "type: \"drift\"",
      Plugins("stateful") +
          R"( class_name: "PipelineTrainer" device_worker_name: "SectionWorker" checkpoint { every_steps: 4 keep: 99 }
                       section_param { section_config { section_out_var_names: "h" } section_config {} })");
  const auto run = [&](const std::string& resume, const std::string& changes) {
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + small.folder() + "/out",
                                "--resume=" + resume, "--set", "section_param.num_microbatches=" + changes});
    const int code = trainer.Wait();
    return std::pair(code, trainer.errors());
  };
  const auto whole = run("never", "2");
  ASSERT_EQ(whole.first, 0) << whole.second;
  const std::string first = small.folder() + "/first";
  std::filesystem::copy(small.folder() + "/out/checkpoints/step-000000000004", first,
                        std::filesystem::copy_options::recursive);
  const std::string advice =
      "go on with the program and the thread_num, section_param.num_microbatches, schedule_mode and section_config "
      "that wrote it";
  EXPECT_THAT(run(first, "4").second,
              HasSubstr("the checkpoint has no state of the operator drift \"c\" of frame 2: " + advice));
  EXPECT_THAT(run(first, "1").second, HasSubstr("the checkpoint has a state of the operator drift \"c\" of frame 1, "
                                                "which this run has not: " +
                                                advice));
}

/// A job of batches of one line; "d" is `drift` of "x", and a line above 0 then stands in a `while` for ever. The flags
/// that run it.
std::vector<std::string> WriteDriftBeforeLoop(const TempDir& folder, const std::string& lines) {
  const auto path = [&](const std::string& name) { return folder.path() + "/" + name; };
  const auto var = [](const std::string& name, const std::string& type) {
    return "vars { name: \"" + name + "\" type { type: LOD_TENSOR lod_tensor { tensor { " + type + " } } } }\n";
  };
  const auto slot = [](const std::string& kind, const std::string& parameter, const std::string& name) {
    return kind + " { parameter: \"" + parameter + "\" arguments: \"" + name + "\" } ";
  };
  const auto print = [&](const std::string& message) {
    return "ops { type: \"print\" " + slot("inputs", "In", "zero") + slot("outputs", "Out", "zero") +
           "attrs { name: \"message\" type: STRING s: \"" + message +
           "\" } attrs { name: \"first_n\" type: INT i: 1 } }\n";
  };
  std::ofstream(path("data")) << lines;
  std::ofstream(path("startup")) << "blocks { idx: 0 parent_idx: -1 }\n";
  std::ofstream(path("main"))
      << "blocks { idx: 0 parent_idx: -1\n"
      << var("x", "data_type: FP32 dims: -1 dims: 1") << var("d", "data_type: FP32 dims: -1 dims: 1")
      << var("zero", "data_type: FP32 dims: 1") << var("go", "data_type: BOOL dims: 1") << "ops { type: \"drift\" "
      << slot("inputs", "X", "x") << slot("outputs", "Out", "d") << "}\nops { type: \"fill_constant\" "
      << slot("outputs", "Out", "zero")
      << "attrs { name: \"shape\" type: LONGS longs: 1 } attrs { name: \"dtype\" type: INT i: 5 } }\n"
      << print("begun") << "ops { type: \"less_than\" " << slot("inputs", "X", "zero") << slot("inputs", "Y", "x")
      << slot("outputs", "Out", "go") << "}\nops { type: \"while\" " << slot("inputs", "Condition", "go")
      << "attrs { name: \"sub_block\" type: BLOCK block_idx: 1 } }\n}\nblocks { idx: 1 parent_idx: 0\n"
      << print("round") << "}\n";
  std::ofstream(path("job")) << Plugins("stateful") << "\nfilelist: \"" << path("data") << "\"\n"
                             << "data_desc { batch_size: 1 multi_slot_desc { slots { name: \"x\" type: \"float\" "
                             << "is_used: true is_dense: true shape: [-1, 1] } } }\n"
                             << "program { main: \"" << path("main") << "\" startup: \"" << path("startup")
                             << "\" }\nfetch_config { fetch_var_names: \"d\" print_period: 1 }\n";
  return {"--trainer_desc=" + path("job"), "--output_dir=" + path("out")};
}

/// Waits for what a `print` of the program says.
bool Says(const Process& trainer, const std::string& message) {
  for (int i = 0; i < 3000; ++i) {
    if (trainer.errors().find(message) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool HasCheckpointOfStep1(const TempDir& folder) {
  return std::filesystem::exists(folder.path() + "/out/checkpoints/step-000000000001");
}

// The operator has counted the batch that the stop ends: a run that went on from there would count it twice.
TEST(PluginJobsTest, ABatchCutInALoopBehindAnOperatorsStateLeavesNoCheckpoint) {
  const TempDir folder = TempDir::Create("drift_loop").value();
  Process trainer("trainer", WriteDriftBeforeLoop(folder, "1 0\n1 1\n1 1\n"));
  std::string line;
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  ASSERT_TRUE(Says(trainer, "round")) << trainer.errors();
  trainer.Signal(SIGINT);
  EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
  EXPECT_THAT(trainer.errors(),
              HasSubstr("within a batch that changes parameters or states: only the checkpoints of "));
  EXPECT_FALSE(HasCheckpointOfStep1(folder)) << trainer.errors();
}

TEST(PluginJobsTest, ABatchCutByAnotherWorkersBadLineBehindAnOperatorsStateLeavesNoCheckpoint) {
  const TempDir folder = TempDir::Create("drift_bad_line").value();
  const std::string go = folder.path() + "/go-";
  std::vector<std::string> flags = WriteDriftBeforeLoop(folder, "1 0\n1 1\nx\n");
  flags.insert(flags.end(), {"--set", "thread_num=2", "--set",
                             "data_desc.pipe_command=n=0; while read -r line; do until [ $n = 0 ] || [ -e " + go +
                                 "$n ]; do sleep 0.02; done; echo \"$line\"; n=$((n+1)); done"});
  Process trainer("trainer", flags);
  // The first batches take turns, so that the first one is over when the second one is in the loop.
  ASSERT_TRUE(Says(trainer, "begun")) << trainer.errors();
  std::ofstream(go + "1") << "go on";
  ASSERT_TRUE(Says(trainer, "round")) << trainer.errors();
  std::ofstream(go + "2") << "go on";
  EXPECT_EQ(trainer.Wait(), 3) << trainer.errors();
  EXPECT_THAT(trainer.errors(), HasSubstr("/data:3:1: slot \"x\""));
  EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("what was trained before is kept")));
  EXPECT_FALSE(HasCheckpointOfStep1(folder)) << trainer.errors();
}

/// WriteMiniJob without end, fed by the operator `ticks` of the plugin "stateful"; the flags that run it.
std::vector<std::string> WriteTicksJob(const TempDir& folder, const std::string& attrs) {
  const std::string job = WriteMiniJob(folder, "1e9", "fetch_config { fetch_var_names: \"i\" print_period: 10 }\n");
  std::string main = ReadFile(folder.path() + "/main.pbtxt").value();
  const size_t begin = main.find("ops { type: \"MiniReader\"");
  const size_t end = main.find("ops { type: \"mini_decoder\"");
  EXPECT_NE(end, std::string::npos);
  main.replace(begin, end - begin,
               "ops { type: \"ticks\" outputs { parameter: \"Out\" arguments: \"record\" } " + attrs + " } ");
  std::ofstream(folder.path() + "/main.pbtxt") << main;
  const std::string both = "plugins=[\"" + TestPlugin("mini_loader") + "\", \"" + TestPlugin("stateful") + "\"]";
  // Ticks grow, and so does the loss of who runs long.
  return {"--trainer_desc=" + job, "--output_dir=" + folder.path() + "/out", "--set", both, "--set",
          "allow_non_finite=true"};
}

TEST(PluginJobsTest, AnOperatorThatGivesAnotherShapeThanItsRulePromisesIsNamed) {
  const TempDir folder = TempDir::Create("misshapen").value();
  Process trainer("trainer", WriteTicksJob(folder, "attrs { name: \"rows\" type: INT i: 3 }"));
  EXPECT_EQ(trainer.Wait(), 2) << trainer.errors();
  EXPECT_THAT(trainer.errors(), HasSubstr("block 1 op[0] ticks (Out: \"record\"): plugin \"" + TestPlugin("stateful") +
                                          "\" gave \"record\" float64 [3, 2], and its shape rule promised \"record\" "
                                          "float64 [9, 2]"));
}

/// What a job says and how it ends when its operator "misbehaving" does what `how` says.
struct End {
  int code = 0;
  std::string errors;
};
End Misbehave(const SmallJob& small, const std::string& how) {
  const std::string job =
      WriteJob(small, "job.prototxt", "type: \"misbehaving\" attrs { name: \"how\" s: \"" + how + "\" }",
               Plugins("misbehaving"));
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + job + ".out"});
  const int code = trainer.Wait();
  return {code, trainer.errors()};
}

TEST(PluginJobsTest, AFailureOfAPluginsOperatorNamesOperatorVariableAndPlugin) {
  const SmallJob small(300);
  const std::string plugin = "misbehaving (Out: \"c\"): plugin \"" + TestPlugin("misbehaving") + "\"";
  for (const auto& [how, said] : std::map<std::string, std::string>{
           {"fails when made", ": there is no device"},
           {"asks for an attribute",
            " threw std::out_of_range: attribute \"unheard_of\" of misbehaving is not registered"},
           {"fails", ": the third batch is odd"},
           {"negative", " threw std::invalid_argument: a tensor of negative size [-3, 8]"},
           {"doubles", " threw std::invalid_argument: a tensor of float32 was taken for one of float64"},
           {"null", " gave \"c\" no values"},
           {"gives nothing", " gave \"c\" no values"},
           {"lod", " gave \"c\" a LoD that does not cut [32, 8] into sequences: [0, 5000, 2, 9]; offsets begin at 0"},
           {"escapes", ": \\x1b[2Jodd\n  \\xc2\\x9b31mred"}}) {
    const End end = Misbehave(small, how);
    EXPECT_EQ(end.code, how == "fails" || how == "escapes" ? 3 : 2) << how;
    EXPECT_THAT(end.errors, HasSubstr(plugin + said)) << how;
  }
  EXPECT_THAT(
      Misbehave(small, "promises -5").errors,
      HasSubstr("misbehaving (Out: \"c\"): output Out: variable \"c\" would have the sizes [-5, 8]; a size is 0 "
                "or more, or -1 for what a batch decides"));
}

TEST(PluginJobsTest, RowsThatTheBatchHasNotAreTheirOperatorsFailure) {
  const SmallJob small(300);
  const std::string gave = "misbehaving (Out: \"c\"): plugin \"" + TestPlugin("misbehaving") + "\" gave \"c\" ";
  for (const std::string how : {"33 rows", "1 rows", "0 rows"}) {
    const End end = Misbehave(small, how);
    EXPECT_EQ(end.code, 2) << how;
    EXPECT_THAT(end.errors, HasSubstr(gave + how + ", and there are 32 in the batch, 32 in \"")) << how;
  }
  const std::string job = WriteJob(small, "job.prototxt", R"(type: "free_of_rows" attrs { name: "how" s: "33 rows" })",
                                   Plugins("misbehaving"));
  Process free("trainer", {"--trainer_desc=" + job, "--output_dir=" + job + ".out"});
  EXPECT_NE(free.Wait(), 0);
  EXPECT_THAT(free.errors(), testing::Not(HasSubstr("free_of_rows (Out")));
}

TEST(PluginJobsTest, AMetricOfWholeNumbersThatNoShapeRulePromisedEndsTheRunByAnError) {
  const SmallJob small(300);
  const std::string job = WriteJob(
      small, "job.prototxt", R"(type: "misbehaving" attrs { name: "how" s: "whole numbers" })", Plugins("misbehaving"));
  std::string text = ReadFile(job).value();
  text.replace(text.find(R"(in: "c")"), 7, R"(in: "h")");
  text.insert(text.find("  optimizer { adam"), "  metric { kind: AUC in: \"c\" }\n");
  std::ofstream(job) << text;
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + job + ".out"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("metric auc: \"c\" is int64, and predictions are float32"));
}

TEST(PluginJobsTest, AnOperatorThatSaysItWasStoppedEndsNoRunAsIfAllWereWell) {
  const SmallJob small(300);
  const End end = Misbehave(small, "cancels");
  EXPECT_EQ(end.code, 2) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("plugin \"" + TestPlugin("misbehaving") +
                                    "\" ends its work as if it had been asked to stop, and nobody has asked: why not"));
}

TEST(PluginJobsTest, APluginThatEndsTheProgramIsNamed) {
  const SmallJob small(300);
  const std::string plugin = "plugin \"" + TestPlugin("misbehaving") + "\" ";
  const std::string uncaught = plugin +
                               "threw where nobody can catch it, in a thread of its own, a destructor or a "
                               "noexcept function: std::runtime_error: ";
  const std::string crashed = plugin + "crashed the program (";
  struct Case {
    std::string how;
    int code;
    std::string said;
  };
  for (const auto& [how, code, said] :
       std::vector<Case>{{"thread throws", 2, uncaught + "nobody catches it"},
                         {"destructor throws", 2, uncaught + "from a destructor"},
                         {"thread is left", 2, plugin + "ended the program by std::terminate"},
                         {"quick_exit", 2, plugin + "called quick_exit"},
                         {"segv", 128 + SIGSEGV, crashed + "SIGSEGV"},
                         {"abort", 128 + SIGABRT, crashed + "SIGABRT"},
                         {"raise", 128 + SIGFPE, crashed + "SIGFPE"}}) {
    const End end = Misbehave(small, how);
    if (code == 2 || !kIsSanitized) {
      EXPECT_EQ(end.code, code) << how << ": " << end.errors;
    }
    EXPECT_THAT(end.errors, HasSubstr(said)) << how;
  }
  EXPECT_THAT(Misbehave(small, "segv").errors, HasSubstr("addr2line -Cfe \"" + TestPlugin("misbehaving") + "\" 0x"));
}

TEST(PluginJobsTest, ThreadsThatCrashTogetherAreReportedBeforeTheyEndTheProgram) {
  const SmallJob small(300);
  const std::string crashed = "plugin \"" + TestPlugin("misbehaving") + "\" crashed the program (SIGSEGV";
  // Under a sanitizer a crash takes many seconds, and on a busy machine minutes.
  for (int run = 0; run < (kIsSanitized ? 1 : 3); ++run) {
    const std::string errors = Misbehave(small, "segv in threads").errors;
    const size_t at = errors.find(crashed);
    ASSERT_NE(at, std::string::npos) << errors;
    EXPECT_EQ(errors.find(crashed, at + 1), std::string::npos) << "reported twice: " << errors;
  }
}

TEST(PluginJobsTest, ASignalThatSomebodySendsBlamesNoPlugin) {
  const TempDir folder = TempDir::Create("ticks_signal").value();
  Process trainer("trainer", WriteTicksJob(folder, ""));
  std::string line;
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  trainer.Signal(SIGSEGV);
  const int code = trainer.Wait();
  if (!kIsSanitized) {
    EXPECT_EQ(code, 128 + SIGSEGV);
  }
  EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("plugin \"")));
}

TEST(PluginJobsTest, ASourceThatDoesNotSayHowFarItReadHasNoCheckpoints) {
  const TempDir folder = TempDir::Create("ticks").value();
  const std::vector<std::string> flags = WriteTicksJob(folder, "");
  std::vector<std::string> keeping = flags;
  keeping.insert(keeping.end(), {"--set", "checkpoint.every_steps=10"});
  Process refused("trainer", keeping);
  EXPECT_EQ(refused.Wait(), 2);
  EXPECT_THAT(refused.errors(), HasSubstr("checkpoint: what gives \"record\" reads by itself and does not say how far: "
                                          "its kernel is no KernelState"));
  Process trainer("trainer", flags);
  std::string line;
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  trainer.Signal(SIGINT);
  EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
  EXPECT_THAT(trainer.errors(),
              HasSubstr("stopped     without a checkpoint: what gives \"record\" does not say how far"));
}

TEST(PluginJobsTest, WithoutALoopAPluginsSourceHasNoEnd) {
  const TempDir folder = TempDir::Create("mini_loader_endless").value();
  const std::string job = WriteMiniJob(folder, "10", "");
  std::ofstream(folder.path() + "/main.pbtxt") << R"(blocks { idx: 0 parent_idx: -1
    vars { name: "record" type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP64 dims: 1 dims: 2 } } } }
    ops { type: "MiniReader" outputs { parameter: "out" arguments: "record" }
          attrs { name: "data_dir" type: STRING s: "parts" } attrs { name: "batch_size" type: INT i: 1 } } })";
  Process trainer("trainer", {"--trainer_desc=" + job, "--set", "fetch_config.fetch_var_names=record"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(),
              HasSubstr("program.main: what gives \"record\" has no end that ends an epoch; put the step "
                        "into the block of a while operator"));
}

}  // namespace
}  // namespace millrace
