#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "e2e/process.h"

namespace millrace {
namespace {

using testing::HasSubstr;

std::string VarText(const std::string& name, const std::string& dims, bool persistable,
                    const std::string& type = "FP32") {
  return "vars { name: \"" + name + "\" persistable: " + (persistable ? "true" : "false") +
         " type { type: LOD_TENSOR lod_tensor { tensor { data_type: " + type + " " + dims + " } } } }\n";
}

std::string FillText(const std::string& name, const std::string& dims) {
  return "ops { type: \"fill_constant\" outputs { parameter: \"Out\" arguments: \"" + name +
         "\" } attrs { name: \"shape\" type: INTS " + dims + " } }\n";
}

/// A momentum step on x [-1, 2], whose parameters the startup program declares.
class MomentumJob {
 public:
  /// `starts`: what the startup program writes; `more`: declared in both programs.
  MomentumJob(const std::string& starts, const std::string& more) {
    const std::string parameters = VarText("w", "dims: 2 dims: 1", true) + VarText("v", "dims: 2 dims: 1", true) +
                                   VarText("rate", "dims: 1", true) + more;
    std::ofstream(path("startup")) << "blocks { idx: 0 parent_idx: -1\n" << parameters << starts << "}\n";
    std::ofstream(path("main")) << "blocks { idx: 0 parent_idx: -1\n"
                                << parameters << VarText("x", "dims: -1 dims: 2", false)
                                << VarText("y", "dims: -1 dims: 1", false) << VarText("g", "dims: 2 dims: 1", false)
                                << R"(
      ops { type: "mul" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Y" arguments: "w" }
            outputs { parameter: "Out" arguments: "y" } }
      ops { type: "mul_grad" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Y" arguments: "w" }
            inputs { parameter: "Out@GRAD" arguments: "y" } outputs { parameter: "Y@GRAD" arguments: "g" } }
      ops { type: "momentum" inputs { parameter: "Param" arguments: "w" } inputs { parameter: "Grad" arguments: "g" }
            inputs { parameter: "Velocity" arguments: "v" } inputs { parameter: "LearningRate" arguments: "rate" }
            outputs { parameter: "ParamOut" arguments: "w" } outputs { parameter: "VelocityOut" arguments: "v" }
            attrs { name: "mu" type: FLOAT f: 0.9 } } })";
    std::ofstream part(path("part"));
    for (int i = 0; i < 20; ++i) part << "2 " << i % 3 << ' ' << i % 5 << '\n';
    std::ofstream(path("job")) << "filelist: \"" << path("part") << "\"\n"
                               << R"(data_desc { batch_size: 4 multi_slot_desc {
        slots { name: "x" type: "float" is_used: true is_dense: true shape: [-1, 2] } } } program { main: ")"
                               << path("main") << "\" startup: \"" << path("startup") << "\" }\n";
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  /// Its exit code and messages, of a run or a look.
  std::pair<int, std::string> Run(bool validate_only) const {
    std::vector<std::string> flags = {"--trainer_desc=" + path("job"), "--output_dir=" + path("out")};
    if (validate_only) flags.emplace_back("--validate_only");
    Process trainer("trainer", flags);
    const int code = trainer.Wait();
    return {code, trainer.errors()};
  }

 private:
  TempDir folder_ = TempDir::Create("momentum_job").value();
};

TEST(MalformedJob, AStartupThatWritesAllTrains) {
  const MomentumJob job(
      FillText("w", "ints: 2 ints: 1") + FillText("v", "ints: 2 ints: 1") + FillText("rate", "ints: 1"), "");
  for (const bool validate_only : {true, false}) {
    const auto [code, errors] = job.Run(validate_only);
    EXPECT_EQ(code, 0) << errors;
  }
}

TEST(MalformedJob, AParameterThatTheStartupNeverWritesIsFoundByALook) {
  const MomentumJob job(FillText("w", "ints: 2 ints: 1") + FillText("rate", "ints: 1"), "");
  for (const bool validate_only : {true, false}) {
    const auto [code, errors] = job.Run(validate_only);
    EXPECT_EQ(code, 2) << errors;
    EXPECT_THAT(errors, HasSubstr("parameters that are read and have no value: \"v\""));
  }
}

TEST(MalformedJob, APersistableVariableThatNothingWritesIsFoundBeforeTheFirstCheckpoint) {
  const MomentumJob job(
      FillText("w", "ints: 2 ints: 1") + FillText("v", "ints: 2 ints: 1") + FillText("rate", "ints: 1"),
      VarText("extra", "dims: 3", true));
  for (const bool validate_only : {true, false}) {
    const auto [code, errors] = job.Run(validate_only);
    EXPECT_EQ(code, 2) << errors;
    EXPECT_THAT(errors, HasSubstr("persistable variables that nothing gives a value: \"extra\""));
  }
}

}  // namespace
}  // namespace millrace
