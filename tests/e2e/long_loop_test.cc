// A batch that stands in a `while` for ever, and a user who has enough of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/file.h"
#include "e2e/process.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

/// Batches of one line: the first does not enter the loop, the second does not leave it. A round adds 1 to "i".
class LoopJob {
 public:
  /// Without `starts` the startup program stands in such a loop already.
  explicit LoopJob(bool i_is_kept, bool starts = true)
      : folder_(TempDir::Create("long_loop").value()), starts_(starts) {
    std::ofstream(path("data")) << "1 0\n1 1\n1 1\n";
    const std::string var = R"( type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: 1 } } } )";
    const std::string i = "vars { name: \"i\" persistable: " + std::string(i_is_kept ? "true" : "false") + var + "}\n";
    const std::string zero = R"(ops { type: "fill_constant" outputs { parameter: "Out" arguments: "NAME" }
      attrs { name: "shape" type: LONGS longs: 1 } attrs { name: "dtype" type: INT i: 5 } }
    )";
    const auto zero_for = [&](const std::string& name) {
      std::string op = zero;
      return op.replace(op.find("NAME"), 4, name);
    };
    const std::string endless = R"(
      vars { name: "on" type { type: LOD_TENSOR lod_tensor { tensor { data_type: BOOL dims: 1 } } } }
      ops { type: "fill_constant" outputs { parameter: "Out" arguments: "on" } attrs { name: "shape" type: LONGS longs: 1 }
            attrs { name: "dtype" type: INT i: 0 } attrs { name: "value" type: FLOAT f: 1 } }
      ops { type: "while" inputs { parameter: "Condition" arguments: "on" }
            attrs { name: "sub_block" type: BLOCK block_idx: 1 } }
    }
    blocks { idx: 1 parent_idx: 0
      ops { type: "print" inputs { parameter: "In" arguments: "on" } outputs { parameter: "Out" arguments: "on" }
            attrs { name: "message" type: STRING s: "round" } attrs { name: "first_n" type: INT i: 1 } }
    )";
    std::ofstream(path("startup")) << "blocks { idx: 0 parent_idx: -1 " << i << zero_for("i") << (starts ? "" : endless)
                                   << "}\n";
    std::ofstream(path("main")) << "blocks { idx: 0 parent_idx: -1\n"
                                << i << R"(vars { name: "x" type { type: LOD_TENSOR lod_tensor { tensor {
                                        data_type: FP32 dims: -1 dims: 1 } } } } )"
                                << "vars { name: \"zero\" " << var << "}\n"
                                << R"(vars { name: "go" type { type: LOD_TENSOR lod_tensor { tensor {
                                        data_type: BOOL dims: 1 } } } }
                                   )"
                                << zero_for("zero") << (i_is_kept ? "" : zero_for("i")) << R"(
      ops { type: "less_than" inputs { parameter: "X" arguments: "zero" } inputs { parameter: "Y" arguments: "x" }
            outputs { parameter: "Out" arguments: "go" } }
      ops { type: "while" inputs { parameter: "Condition" arguments: "go" }
            attrs { name: "sub_block" type: BLOCK block_idx: 1 } }
    }
    blocks { idx: 1 parent_idx: 0
      ops { type: "increment" inputs { parameter: "X" arguments: "i" } outputs { parameter: "Out" arguments: "i" } }
      ops { type: "print" inputs { parameter: "In" arguments: "i" } outputs { parameter: "Out" arguments: "i" }
            attrs { name: "message" type: STRING s: "round" } attrs { name: "first_n" type: INT i: 1 } }
    })";
    std::ofstream(path("job")) << "filelist: \"" << path("data") << "\"\nupdate_mode: SERIAL\n"
                               << "data_desc { batch_size: 1 multi_slot_desc { slots { name: \"x\" type: \"float\" "
                               << "is_used: true is_dense: true shape: [-1, 1] } } }\n"
                               << "program { main: \"" << path("main") << "\" startup: \"" << path("startup")
                               << "\" }\nfetch_config { fetch_var_names: \"i\" print_period: 1 }\n";
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  /// Runs until the second batch is in its loop, then interrupts; the exit code.
  int Interrupt(std::string* errors) const {
    Process trainer("trainer", {"--trainer_desc=" + path("job"), "--output_dir=" + path("out")});
    std::string line;
    if (!starts_ || trainer.ReadLine(&line)) {
      while (trainer.errors().find("round") == std::string::npos) std::this_thread::yield();
      trainer.Signal(SIGINT);
    }
    const int code = trainer.Wait();
    *errors = trainer.errors();
    return code;
  }

 private:
  TempDir folder_;
  bool starts_;
};

TEST(LongLoop, EndsWithACheckpointOfTheBatchesBeforeIt) {
  const LoopJob job(false);
  std::string errors;
  ASSERT_EQ(job.Interrupt(&errors), 130) << errors;
  EXPECT_THAT(errors, HasSubstr("interrupted: 1 examples in 1 batches"));
  EXPECT_TRUE(std::filesystem::exists(job.path("out/checkpoints/step-000000000001"))) << errors;
}

TEST(LongLoop, ThatWritesParametersLeavesNoCheckpoint) {
  const LoopJob job(true);
  std::string errors;
  ASSERT_EQ(job.Interrupt(&errors), 130) << errors;
  EXPECT_THAT(errors,
              HasSubstr("within a batch that changes parameters or states: only the checkpoints of before can be "));
  EXPECT_FALSE(std::filesystem::exists(job.path("out/checkpoints/step-000000000001"))) << errors;
}

TEST(LongLoop, OfAStartupProgramEndsWhenItIsAsked) {
  const LoopJob job(false, false);
  std::string errors;
  EXPECT_EQ(job.Interrupt(&errors), 130) << errors;
  EXPECT_THAT(errors, HasSubstr("while: stopped in a while loop"));
}

}  // namespace
}  // namespace millrace
