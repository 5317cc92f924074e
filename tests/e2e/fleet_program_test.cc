// Programs that Paddle's fleet wrote for a worker of a parameter server, in one process: tests/golden/fleet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/hash.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "paths.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kAdam[] = R"(model {
  table { name: "emb" dim: 4 init { uniform: 0.1 } optimizer { adam { lr: 0.05 } } }
  optimizer { adam { lr: 0.05 } }
}
)";
constexpr char kSgd[] = R"(model {
  table { name: "emb" dim: 4 init { uniform: 0.1 } optimizer { sgd { lr: 0.1 } } }
  optimizer { sgd { lr: 0.1 } }
}
)";

constexpr char kHidden[] = R"(model {
  table { name: "emb" accessor {
    accessor_class: "SparseAccessor" embedx_dim: 3 embedx_threshold: 1
    embed_sgd_param { name: "SparseAdamSGDRule" adam { learning_rate: 0.05 weight_bounds: [-10, 10] } }
    embedx_sgd_param { name: "SparseAdamSGDRule" adam { learning_rate: 0.05 initial_range: 0.1 } } } }
  optimizer { adam { lr: 0.05 } }
}
)";
constexpr char kShown[] = R"(model {
  table { name: "emb" accessor {
    embedx_dim: 4 embedx_threshold: 1
    embed_sgd_param { name: "SparseAdamSGDRule" adam { learning_rate: 0.05 weight_bounds: [-10, 10] } }
    embedx_sgd_param { name: "SparseAdamSGDRule" adam { learning_rate: 0.05 initial_range: 0.1 } } } }
  optimizer { adam { lr: 0.05 } }
}
)";

// Of a linear part: rows of one weight.
constexpr char kLinear[] = R"(model {
  table { name: "emb" accessor {
    accessor_class: "SparseAccessor" embedx_dim: 0 embedx_threshold: 0
    embed_sgd_param { name: "SparseAdamSGDRule" adam { learning_rate: 0.05 } }
    embedx_sgd_param { name: "SparseAdaGradSGDRule" } } }
  optimizer { adam { lr: 0.05 } }
}
)";

/// Lines of one label and up to three ids, whose parity the label follows, and jobs over them.
class FleetJob {
 public:
  FleetJob() : folder_(TempDir::Create("fleet_job").value()) {
    std::ofstream lines(folder() + "/lines");
    for (uint64_t i = 0; i < 900; ++i) {
      const uint64_t id = HashedNumber(7, i) % 60;
      lines << "1 " << id % 2;
      if (i % 5 == 0) lines << " 3 " << id << " " << id + 2 << " 0\n";
      if (i % 5 != 0) lines << " 1 " << id << "\n";
    }
  }

  const std::string& folder() const { return folder_.path(); }
  static std::string Golden(const std::string& name) { return SourceDir() + "/tests/golden/fleet/" + name; }

  /// How often the lines show each id, and how often where the label is 1, times `epochs`.
  std::map<uint64_t, std::pair<float, float>> Counts(int epochs) const {
    std::map<uint64_t, std::pair<float, float>> counts;
    std::ifstream lines(folder() + "/lines");
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      uint64_t one = 0;
      uint64_t label = 0;
      uint64_t ids = 0;
      words >> one >> label >> ids;
      for (uint64_t id = 0; words >> id;) {
        counts[id].first += static_cast<float>(epochs);
        counts[id].second += static_cast<float>(label) * static_cast<float>(epochs);
      }
    }
    return counts;
  }

  /// A job of the program that fleet wrote in a mode: "async", "sync", "geo", or "counted", which is "async" with
  /// CtrCommonAccessor and cvm.
  std::string Write(const std::string& mode, const std::string& model, const std::string& more = "") const {
    const std::string path = folder() + "/" + mode + ".prototxt";
    std::ofstream(path) << "update_mode: SERIAL\nfilelist: \"" << folder() << "/lines\"\nprogram { main: \""
                        << Golden(mode + "_main.prototxt") << "\" startup: \"" << Golden(mode + "_startup.prototxt")
                        << "\" }\n"
                        << model << R"(fetch_config { fetch_var_names: "mean_0.tmp_0" print_period: 10 }
data_desc {
  batch_size: 30
  multi_slot_desc {
    slots { name: "label" type: "float" is_used: true is_dense: true shape: -1 shape: 1 }
    slots { name: "ids" type: "uint64" is_used: true }
  }
}
)" << more;
    return path;
  }

 private:
  TempDir folder_;
};

double FirstLoss(const std::string& output) { return std::stod(output.substr(output.find(":[") + 2)); }

/// What a run prints last of the loss.
double LastLoss(const std::string& output) {
  const size_t at = output.rfind(":[");
  return at == std::string::npos ? 1e9 : std::stod(output.substr(at + 2));
}

std::string RunTrainer(const std::string& job, std::vector<std::string> flags, int code = 0) {
  flags.insert(flags.begin(), "--trainer_desc=" + job);
  Process trainer("trainer", flags);
  EXPECT_EQ(trainer.Wait(), code) << trainer.errors();
  return trainer.output() + trainer.errors();
}

std::vector<std::string> SavedBy(const std::string& job, const std::string& folder, const std::string& output,
                                 std::vector<std::string> flags = {}) {
  flags.insert(flags.end(), {"--output_dir=" + output, "--set", "program.save_dir=\"" + folder + "\""});
  RunTrainer(job, flags);
  return FolderContent(folder);
}

class FleetMode : public testing::TestWithParam<const char*> {};

TEST_P(FleetMode, TrainsInOneProcess) {
  const FleetJob data;
  const std::string mode = GetParam();
  const std::string model = mode == "geo" ? "" : mode == "sync" ? kSgd : kAdam;
  const std::string job = data.Write(mode, model, "epochs: 20\n");
  EXPECT_LT(LastLoss(RunTrainer(job, {"--output_dir=" + data.folder() + "/out"})), 0.4);
}

TEST_P(FleetMode, GoesOnFromACheckpointToTheSameBytes) {
  const FleetJob data;
  const std::string mode = GetParam();
  const std::string job = data.Write(mode, mode == "geo" ? "" : mode == "sync" ? kSgd : kAdam);
  const std::string whole = data.folder() + "/whole";
  const std::string resumed = data.folder() + "/resumed";
  const std::vector<std::string> expected = SavedBy(job, whole, data.folder() + "/a", {"--set", "epochs=3"});
  SavedBy(job, resumed, data.folder() + "/b", {"--set", "epochs=1", "--set", "checkpoint={every_steps: 7}"});
  const std::vector<std::string> got =
      SavedBy(job, resumed, data.folder() + "/b",
              {"--set", "epochs=3", "--set", "checkpoint={every_steps: 7}", "--resume=auto"});
  EXPECT_EQ(got, expected);
  EXPECT_GE(got.size(), 3U);
}

using Changes = std::vector<std::pair<std::string, std::string>>;

std::string Changed(std::string text, const Changes& changes) {
  for (const auto& [from, to] : changes) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

/// A program that fleet wrote for rows that count: shown to it, or hidden from it.
struct CountedProgram {
  std::string name;
  std::string mode;
  std::string model;
  Changes changes = {};  ///< of the texts of both programs
};

class FleetCounts : public testing::TestWithParam<CountedProgram> {
 protected:
  std::string Job(const std::string& more = "") const {
    const CountedProgram& program = GetParam();
    const std::string job = data_.Write(program.mode, program.model, more);
    // What ShowClickEntry would name.
    if (program.mode == "async") {
      std::string main = ReadFile(FleetJob::Golden("async_main.prototxt")).value();
      const std::string clicks = "\"Clicks\" arguments: \"";
      const size_t at = main.find(clicks + "clk\"");
      EXPECT_NE(at, std::string::npos);
      main.replace(at + clicks.size(), 3, "label");
      const std::string changed = Changed(main, program.changes);
      EXPECT_EQ(changed == main, program.changes.empty());
      std::ofstream(data_.folder() + "/main.prototxt") << changed;
      std::ofstream(data_.folder() + "/startup.prototxt")
          << Changed(ReadFile(FleetJob::Golden("async_startup.prototxt")).value(), program.changes);
    }
    return job;
  }
  std::vector<std::string> Flags(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--output_dir=" + data_.folder() + "/" + out, "--set", "fetch_config.print_period=1"});
    if (GetParam().mode == "async") {
      more.insert(more.end(), {"--set", "program.main=\"" + data_.folder() + "/main.prototxt\"", "--set",
                               "program.startup=\"" + data_.folder() + "/startup.prototxt\""});
    }
    return more;
  }

  const FleetJob data_;
};

TEST_P(FleetCounts, CountsWhatTheLinesShowAndClickAndLearns) {
  const std::string saved = data_.folder() + "/saved";
  const std::string said =
      RunTrainer(Job("epochs: 10\n"), Flags("out", {"--set", "program.save_dir=\"" + saved + "\""}));
  EXPECT_LT(LastLoss(said), 0.4);
  EXPECT_EQ(CountsIn(saved + "/tables/emb"), data_.Counts(10));
}

TEST_P(FleetCounts, GoesOnFromACheckpointToTheSameBytes) {
  const std::string job = Job();
  const std::string saved = data_.folder() + "/saved";
  const auto save = [&](const std::string& out, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--set", "program.save_dir=\"" + saved + "\"", "--set", "checkpoint={every_steps: 7}"});
    RunTrainer(job, Flags(out, flags));
    return FolderContent(saved);
  };
  const std::vector<std::string> expected = save("a", {"--set", "epochs=3"});
  save("b", {"--set", "epochs=1"});
  EXPECT_EQ(save("b", {"--set", "epochs=3", "--resume=auto"}), expected);
}

TEST_P(FleetCounts, RowsOfAServerStartItWithTheirCounts) {
  const std::string tables = data_.folder() + "/tables";
  const std::string saved = data_.folder() + "/saved";
  const std::string job = Job("epochs: 5\n");
  const std::string fresh = RunTrainer(job, Flags("a", {"--set", "program.save_server_dir=\"" + tables + "\""}));
  const std::string on = RunTrainer(job, Flags("b", {"--set", "program.server_dir=\"" + tables + "\"", "--set",
                                                     "program.save_dir=\"" + saved + "\""}));
  EXPECT_EQ(CountsIn(saved + "/tables/emb"), data_.Counts(10));
  EXPECT_NE(FirstLoss(on), FirstLoss(fresh)) << "dense parameters start anew, rows do not";
}

INSTANTIATE_TEST_SUITE_P(
    All, FleetCounts,
    testing::Values(CountedProgram{"Shown", "counted", kShown}, CountedProgram{"Hidden", "async", kHidden},
                    // As embedding(is_sparse=True) is written.
                    CountedProgram{
                        "HiddenInLookupTableV2", "async", kHidden, {{"s: \"lookup_table\"", "s: \"lookup_table_v2\""}}},
                    CountedProgram{"HiddenInRowsOfOne",
                                   "async",
                                   kLinear,
                                   {{"dims: 4", "dims: 1"}, {"ints: 4", "ints: 1"}, {"longs: 4", "longs: 1"}}}),
    [](const auto& given) { return given.param.name; });

INSTANTIATE_TEST_SUITE_P(All, FleetMode, testing::Values("async", "sync", "geo"));

/// A variable's file among those that a run saved.
std::string File(const std::string& folder, const std::string& name) { return ReadFile(folder + "/" + name).value(); }

// geo looks up a matrix and has updates of its own; sync leaves both to a server. With the same table they are one job.
TEST(FleetProgram, WhatAServerUpdatedIsUpdatedAsAProgramDoes) {
  const FleetJob data;
  const std::string sync = data.folder() + "/sync_saved";
  const std::string geo = data.folder() + "/geo_saved";
  SavedBy(data.Write("sync", kSgd, "epochs: 2\n"), sync, data.folder() + "/a");
  SavedBy(data.Write("geo", kSgd, "epochs: 2\n"), geo, data.folder() + "/b");
  for (const std::string name : {"tables/emb", "fc.w_0", "fc.b_0"})
    EXPECT_EQ(File(sync, name), File(geo, name)) << name;
}

/// The geo program without what begins with one of `left_out`, and with `added` as its last operators.
std::string GeoWith(const std::vector<std::string>& left_out, const std::string& added) {
  std::istringstream lines(ReadFile(FleetJob::Golden("geo_main.prototxt")).value());
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const bool goes = std::any_of(left_out.begin(), left_out.end(), [&line](const std::string& type) {
      return line.find("type: \"" + type + "\"") != std::string::npos;
    });
    if (!goes && line != "}") text += line + "\n";
  }
  return text + added + "}\n";
}

std::string Operator(const std::string& type, const std::string& in, const std::string& out,
                     const std::string& more = "") {
  return "ops { type: \"" + type + "\" " +
         (in.empty() ? "" : "inputs { parameter: \"X\" arguments: \"" + in + "\" } ") +
         (out.empty() ? "" : "outputs { parameter: \"Out\" arguments: \"" + out + "\" } ") + more + "}\n";
}

void ExpectTrainsAsGeo(const std::string& program, const std::string& model) {
  const FleetJob data;
  const std::string geo = data.folder() + "/geo_saved";
  SavedBy(data.Write("geo", ""), geo, data.folder() + "/a");
  std::ofstream(data.folder() + "/main.prototxt") << program;
  const std::string saved = data.folder() + "/saved";
  SavedBy(data.Write("geo", model), saved, data.folder() + "/b",
          {"--set", "program.main=\"" + data.folder() + "/main.prototxt\""});
  for (const std::string name : {"emb", "fc.w_0", "fc.b_0"}) EXPECT_EQ(File(saved, name), File(geo, name)) << name;
}

// What the transpiler of Paddle 1 leaves a trainer: updates are the servers', and large parameters come in blocks.
TEST(FleetProgram, OfATranspilerIsUpdatedAsByItsServers) {
  const std::string added =
      "vars { name: \"emb@GRAD.block0\" type { type: SELECTED_ROWS selected_rows { data_type: FP32 dims: 50 dims: 4 } "
      "} }\n"
      "vars { name: \"emb.block0\" type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: 50 dims: 4 } } "
      "} "
      "persistable: true }\n"
      "vars { name: \"dummy\" type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 } } } }\n" +
      Operator("split_selected_rows", "emb@GRAD", "emb@GRAD.block0") + Operator("send", "emb@GRAD.block0", "dummy") +
      Operator("send", "fc.w_0@GRAD", "dummy") + Operator("send", "fc.b_0@GRAD", "dummy") +
      Operator("send_barrier", "dummy", "") + Operator("recv", "dummy", "emb.block0") +
      Operator("recv", "dummy", "fc.w_0") + Operator("recv", "dummy", "fc.b_0") + Operator("fetch_barrier", "", "") +
      Operator("concat", "emb.block0", "emb");
  ExpectTrainsAsGeo(GeoWith({"sgd", "send"}, added), "model { optimizer { sgd { lr: 0.1 } } }\n");
}

TEST(FleetProgram, WhatServersWouldSaveIsSaved) {
  const FleetJob data;
  const std::string file = data.folder() + "/fc.w_0";
  const auto save = [](const std::string& path) {
    return Operator("recv_save", "", "", "attrs { name: \"file_path\" type: STRING s: \"" + path + "\" } ");
  };
  const std::string main = data.folder() + "/main.prototxt";
  const std::string job = data.Write("geo", "");
  const std::vector<std::string> flags = {"--set", "program.main=\"" + main + "\""};
  std::ofstream(main) << GeoWith({}, save(file));
  SavedBy(job, data.folder() + "/saved", data.folder() + "/a", flags);
  EXPECT_EQ(ReadFile(file).value(), File(data.folder() + "/saved", "fc.w_0"));
  std::ofstream(main) << GeoWith({}, save(data.folder() + "/nobody"));
  EXPECT_THAT(RunTrainer(job, {"--validate_only", flags[0], flags[1]}, 2),
              HasSubstr("operator recv_save: no variable of the program has the name of"));
}

// GradAllReduce divides the loss's gradient by the workers and adds up; LocalSGD divides what was added up.
TEST(FleetProgram, OfCollectiveTrainingIsThatOfOneWorker) {
  const std::string half = "attrs { name: \"scale\" type: FLOAT f: 0.5 } ";
  std::string text = GeoWith({"send"}, "");
  const std::string sum = Operator("c_sync_calc_stream", "fc.w_0@GRAD", "fc.w_0@GRAD") +
                          Operator("c_allreduce_sum", "fc.w_0@GRAD", "fc.w_0@GRAD") +
                          Operator("c_sync_comm_stream", "fc.w_0@GRAD", "fc.w_0@GRAD");
  const auto before = [&text](const std::string& type, const std::string& added) {
    size_t at = text.find("type: \"" + type + "\"");
    ASSERT_NE(at, std::string::npos);
    at = text.rfind('\n', at) + 1;
    text.insert(at, added);
  };
  before("reduce_mean_grad", Operator("scale", "mean_0.tmp_0@GRAD", "mean_0.tmp_0@GRAD", half));
  before("sgd", sum + Operator("scale", "fc.w_0@GRAD", "fc.w_0@GRAD", half));
  ExpectTrainsAsGeo(text, "");
}

TEST(FleetProgram, StartsFromDenseParametersOfAFolderOfPaddle) {
  const FleetJob data;
  const std::string whole = data.folder() + "/whole";
  SavedBy(data.Write("sync", kSgd), whole, data.folder() + "/a");
  // Paddle's folders have neither a list nor what servers keep.
  const std::string paddle = data.folder() + "/paddle";
  fs::create_directory(paddle);
  for (const std::string name : {"fc.w_0", "fc.b_0"}) fs::copy(whole + "/" + name, paddle + "/" + name);
  const std::string still =
      "model { table { name: \"emb\" dim: 4 init { uniform: 0.1 } } optimizer { sgd { lr: 1e-30 } } }\n";
  const auto started_from = [&](const std::string& folder) {
    const std::string saved = folder + "_saved";
    SavedBy(data.Write("sync", still), saved, folder + "_out", {"--set", "program.init_dir=\"" + folder + "\""});
    return saved;
  };
  const std::string from_paddle = started_from(paddle);
  EXPECT_EQ(File(from_paddle, "fc.w_0"), File(whole, "fc.w_0"));
  EXPECT_NE(File(from_paddle, "tables/emb"), File(whole, "tables/emb"));
  // A folder of ours has the rows, too.
  EXPECT_EQ(File(started_from(whole), "tables/emb").size(), File(whole, "tables/emb").size());
}

TEST(FleetProgram, AResumedJobTakesTheRowsOfItsCheckpointAndNotThoseThatItStartedFrom) {
  const FleetJob data;
  const std::string job = data.Write("sync", kSgd);
  const std::string first = data.folder() + "/first";
  SavedBy(job, first, data.folder() + "/a");
  const std::string start = "program.init_dir=\"" + first + "\"";
  const std::vector<std::string> expected =
      SavedBy(job, data.folder() + "/saved", data.folder() + "/b", {"--set", start, "--set", "epochs=2"});
  const std::vector<std::string> flags = {"--set", start, "--set", "checkpoint={every_steps: 50}"};
  SavedBy(job, data.folder() + "/saved", data.folder() + "/c", flags);
  std::vector<std::string> more = flags;
  more.insert(more.end(), {"--set", "epochs=2", "--resume=auto"});
  EXPECT_EQ(SavedBy(job, data.folder() + "/saved", data.folder() + "/c", more), expected);
}

TEST(FleetProgram, RowsOfAServerStartAJobAndAreWrittenForOne) {
  const FleetJob data;
  const std::string tables = data.folder() + "/tables";
  const std::string job = data.Write("async", kAdam, "epochs: 5\n");
  const auto run = [&](const std::string& name, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--output_dir=" + data.folder() + "/" + name, "--set", "fetch_config.print_period=1"});
    return RunTrainer(job, flags);
  };
  const double fresh = FirstLoss(run("a", {"--set", "program.save_server_dir=\"" + tables + "\""}));
  const std::string start = "program.server_dir=\"" + tables + "\"";
  EXPECT_LT(FirstLoss(run("b", {"--set", start})), fresh - 0.1);
  // What went on is what a checkpoint has, not what servers had once.
  const double last = LastLoss(run("c", {"--set", start, "--set", "checkpoint={every_steps: 50}"}));
  EXPECT_LT(FirstLoss(run(
                "c", {"--set", start, "--set", "checkpoint={every_steps: 50}", "--set", "epochs=6", "--resume=auto"})),
            last + 0.1);
  EXPECT_THAT(ReadFile(tables + "/000/part-000-00007.gz").value().size(), testing::Gt(20U));
}

TEST(FleetProgram, WhatServersCannotGiveOrTakeIsToldBeforeTheTraining) {
  const FleetJob data;
  const std::string job = data.Write("async", kAdam);
  const std::string out = "--output_dir=" + data.folder() + "/out";
  EXPECT_THAT(RunTrainer(job, {out, "--set", "program.server_dir=\"" + data.folder() + "/none\""}, 3),
              HasSubstr("none/000"));
  fs::create_directories(data.folder() + "/wrong/000");
  std::ofstream(data.folder() + "/wrong/000/part-000-00000") << "1 0 0 0 1 0 0.5 0.5\n";
  EXPECT_THAT(RunTrainer(job, {out, "--set", "program.server_dir=\"" + data.folder() + "/wrong\""}, 3),
              HasSubstr("part-000-00000:1: the row of id 1 has 7 numbers behind it, not the 21"));
  const std::string adagrad =
      data.Write("async", "model { table { name: \"emb\" dim: 4 } optimizer { adagrad { lr: 0.1 } } }\n");
  EXPECT_THAT(RunTrainer(adagrad, {out, "--set", "program.save_server_dir=\"" + data.folder() + "/s\""}, 2),
              HasSubstr("the rows of table \"emb\" cannot be written for servers"));
  // A folder with something else in it is not replaced.
  fs::create_directories(data.folder() + "/mine/000");
  std::ofstream(data.folder() + "/mine/000/thesis.txt") << "text";
  const std::string again = data.Write("async", kAdam);
  EXPECT_THAT(RunTrainer(again, {out, "--set", "program.save_server_dir=\"" + data.folder() + "/mine\""}, 2),
              HasSubstr("mine/000"));
  EXPECT_TRUE(fs::exists(data.folder() + "/mine/000/thesis.txt"));
  const std::string geo = data.Write("geo", "");
  EXPECT_THAT(RunTrainer(geo, {out, "--set", "program.server_dir=\"" + data.folder() + "/wrong\""}, 2),
              HasSubstr("program.main looks up no rows of servers"));
}

// It was told behind the training, and an empty name was the folder of the root.
TEST(FleetProgram, AFolderForServersThatNobodyWouldWriteIsToldWhenTheJobIsChecked) {
  const FleetJob data;
  const std::string geo = data.Write("geo", "");
  const std::string set = "program.save_server_dir=\"" + data.folder() + "/s\"";
  EXPECT_THAT(RunTrainer(geo, {"--validate_only", "--set", set}, 2),
              HasSubstr("program.main looks up no rows of servers (distributed_lookup_table); leave it out"));
  RunTrainer(geo, {"--output_dir=" + data.folder() + "/out", "--set", set}, 2);
  EXPECT_FALSE(fs::exists(data.folder() + "/out/metrics.jsonl"));
  const std::string async = data.Write("async", kAdam);
  for (const std::string field : {"save_dir", "server_dir", "save_server_dir"}) {
    EXPECT_THAT(RunTrainer(async, {"--validate_only", "--set", "program." + field + "=\"\""}, 2),
                HasSubstr("the name of the folder is empty"));
  }
}

TEST(FleetProgram, ThreadsShareTheTable) {
  const FleetJob data;
  const std::string job = data.Write("async", kAdam, "epochs: 20\nthread_num: 2\n");
  for (const std::string mode : {"HOGWILD", "ROW_LOCK"}) {
    EXPECT_LT(LastLoss(RunTrainer(job, {"--output_dir=" + data.folder() + "/" + mode, "--set", "update_mode=" + mode})),
              0.4);
  }
}

TEST(FleetProgram, ClassesOfPaddleAreKnown) {
  const FleetJob data;
  const std::string job = data.Write("async", kAdam, "class_name: \"DistMultiTrainer\"\n");
  for (const std::string worker :
       {"DownpourWorker", "DownpourWorkerOpt", "DownpourLiteWorker", "DownpourSGD", "DownpourSGDOPT", "DownpourLite"}) {
    RunTrainer(job, {"--output_dir=" + data.folder() + "/" + worker, "--set", "device_worker_name=\"" + worker + "\""});
  }
}

TEST(FleetProgram, ItsModelServes) {
  const FleetJob data;
  const std::string job =
      data.Write("async", kAdam,
                 "epochs: 20\noutput { export { format: PADDLE vocabulary: 100 fetch_vars: \"sigmoid_0.tmp_0\" } }\n");
  RunTrainer(job, {"--output_dir=" + data.folder() + "/out"});
  Process predictor("predictor", {"--model_dir=" + data.folder() + "/out/paddle", "--input=" + data.folder() + "/lines",
                                  "--output=" + data.folder() + "/scores"});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  std::ifstream scores(data.folder() + "/scores");
  std::ifstream lines(data.folder() + "/lines");
  int right = 0;
  int count = 0;
  double score = 0;
  for (std::string line; std::getline(lines, line) && scores >> score; ++count)
    right += (score > 0.5) == (line[2] == '1');
  EXPECT_EQ(count, 900);
  EXPECT_GT(right, 850);
}

TEST(FleetProgram, RanksComeToTheBytesOfOneProcess) {
  if (const std::string reason = WhyNoRanks(); !reason.empty()) GTEST_SKIP() << reason;
  const FleetJob data;
  fs::copy(data.folder() + "/lines", data.folder() + "/more");
  const std::string job = data.Write("async", kAdam,
                                     "filelist: \"" + data.folder() +
                                         "/more\"\ndist { update: SYNC micro_batches: 2 }\nclass_name: "
                                         "\"DistMultiTrainer\"\ndevice_worker_name: \"DownpourLiteWorker\"\n");
  const auto saved_by = [&](int ranks) {
    const std::string folder = data.folder() + "/saved" + std::to_string(ranks);
    Process trainer("trainer",
                    {"--trainer_desc=" + job, "--output_dir=" + data.folder() + "/out" + std::to_string(ranks), "--set",
                     "program.save_dir=\"" + folder + "\""},
                    {.ranks = ranks});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    return FolderContent(folder);
  };
  const std::vector<std::string> one = saved_by(1);
  EXPECT_GE(one.size(), 3U);
  EXPECT_EQ(saved_by(2), one);
}

TEST(FleetProgram, AServersProgramHasNothingToServe) {
  const FleetJob data;
  std::ofstream(data.folder() + "/server.prototxt")
      << "blocks { idx: 0 parent_idx: -1 ops { type: \"listen_and_serv\" attrs { name: \"endpoint\" type: STRING s: "
         "\"127.0.0.1:6174\" } attrs { name: \"optimize_blocks\" type: BLOCKS blocks_idx: 1 } } }\n"
         "blocks { idx: 1 parent_idx: 0 ops { type: \"sgd\" } }\n";
  const std::string output = data.folder() + "/out";
  // 0: no launcher.
  for (const int ranks : WhyNoRanks().empty() ? std::vector<int>{0, 1, 2} : std::vector<int>{0}) {
    Process server("trainer",
                   {"--trainer_desc=" + data.Write("async", kAdam), "--output_dir=" + output, "--set",
                    "update_mode=HOGWILD", "--set", "program.main=\"" + data.folder() + "/server.prototxt\""},
                   {.ranks = ranks});
    EXPECT_EQ(server.Wait(), 0) << server.errors();
    EXPECT_THAT(server.errors(), HasSubstr("/server.prototxt is the program of a server (listen_and_serv); there is "
                                           "nothing to serve: each trainer has a part of every table"));
    EXPECT_FALSE(fs::exists(output));
  }
}

struct Refusal {
  const char* name;
  const char* mode;
  const char* model;
  std::vector<std::pair<std::string, std::string>> changes;  ///< of the main program's text
  std::string told;
};

class FleetRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(FleetRefusal, NamesWhatItMet) {
  const Refusal& refusal = GetParam();
  const FleetJob data;
  std::string text = ReadFile(FleetJob::Golden(refusal.mode + std::string("_main.prototxt"))).value();
  for (const auto& [from, to] : refusal.changes) {
    const size_t at = text.rfind(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  std::ofstream(data.folder() + "/main.prototxt") << text;
  const std::string job = data.Write(refusal.mode, refusal.model);
  const std::string said =
      RunTrainer(job, {"--validate_only", "--set", "program.main=\"" + data.folder() + "/main.prototxt\""}, 2);
  EXPECT_THAT(said, HasSubstr(refusal.told));
}

std::string Op(const std::string& type) { return "ops { type: \"" + type + "\" }\n  ops { outputs"; }

INSTANTIATE_TEST_SUITE_P(
    All, FleetRefusal,
    testing::Values(
        Refusal{"NoModel",
                "async",
                "",
                {},
                "main.prototxt: operator distributed_lookup_table: nothing says how the rows of \"emb\""},
        Refusal{"OtherTable",
                "async",
                "model { table { name: \"emd\" dim: 4 } optimizer { sgd {} } }\n",
                {},
                "nothing says how the rows of \"emb\" start"},
        Refusal{"OtherDim",
                "async",
                "model { table { name: \"emb\" dim: 8 } optimizer { sgd {} } }\n",
                {},
                "\"emb\" has rows of 4 values, and model.table says dim: 8"},
        Refusal{"OtherAccessor",
                "async",
                "model { table { name: \"emb\" accessor {} } optimizer { sgd {} } }\n",
                {},
                "\"emb\" has rows of 4 values, and the accessor of model.table says 11"},
        Refusal{"CountsAreRead",
                "async",
                "model { table { name: \"emb\" accessor { embedx_dim: 1 } } optimizer { sgd {} } }\n",
                {},
                "\"reshape2\" reads them: put continuous_value_model behind the embedding"},
        Refusal{
            "CountsAreHidden",
            "counted",
            "model { table { name: \"emb\" accessor { accessor_class: \"SparseAccessor\" embedx_dim: 6 } } optimizer "
            "{ sgd {} } }\n",
            {},
            "use_cvm_op: rows of \"emb\" show counts"},
        Refusal{
            "AccessorOfNoServer",
            "geo",
            "model { table { name: \"emb\" accessor { accessor_class: \"SparseAccessor\" embedx_dim: 3 } } optimizer "
            "{ sgd {} } }\n",
            {},
            "\"emb\" has a SparseAccessor, which only rows that are looked up on servers have"},
        Refusal{"NoOptimizer", "async", "model { table { name: \"emb\" dim: 4 } }\n", {}, "the model has no optimizer"},
        Refusal{"UnreadTable",
                "geo",
                "model { table { name: \"b\" dim: 4 } optimizer { sgd {} } }\n",
                {},
                "no operator of program.main looks up rows of it"},
        Refusal{
            "UpdatesItself", "geo", "model { optimizer { sgd {} } }\n", {}, "program.main leaves no update to servers"},
        // ClipGradByGlobalNorm over the rows, too.
        Refusal{"Clip",
                "async",
                kAdam,
                {{"ops { outputs",
                  "ops { inputs { parameter: \"X\" arguments: \"emb@GRAD\" } outputs { parameter: \"Out\" arguments: "
                  "\"clip.tmp_0\" } type: \"merge_selected_rows\" }\n  ops { outputs"}},
                "rows of servers cannot be clipped or penalized; give their embedding ParamAttr(need_clip=False)"},
        Refusal{"Counts",
                "async",
                kAdam,
                {{"\"Shows\" arguments: \"show\"", "\"Shows\" arguments: \"label\""}},
                "Shows: \"label\" counts for rows of \"emb\""},
        Refusal{"Cvm",
                "async",
                kAdam,
                {{"\"use_cvm_op\" type: BOOLEAN b: false", "\"use_cvm_op\" type: BOOLEAN b: true"}},
                "use_cvm_op: rows of \"emb\" show counts"},
        Refusal{"Version",
                "async",
                kAdam,
                {{"s: \"lookup_table\"", "s: \"lookup_table_v3\""}},
                "lookup_table_version \"lookup_table_v3\""},
        Refusal{"TableId",
                "async",
                kAdam,
                {{"\"table_id\" type: INT i: 0", "\"table_id\" type: INT i: 4"}},
                "operator distributed_push_sparse: no distributed_lookup_table has its table_id"},
        Refusal{"ServerAndTrainer",
                "async",
                kAdam,
                {{"ops { outputs", Op("listen_and_serv")}},
                "operator listen_and_serv: is not run here: it is of a server"},
        Refusal{"Box",
                "async",
                kAdam,
                {{"ops { outputs", Op("pull_box_sparse")}},
                "operator pull_box_sparse: is not run here"},
        Refusal{"NotAGradient",
                "async",
                kAdam,
                {{"arguments: \"fc.b_0@GRAD\" arguments: \"fc.w_0@GRAD\"", "arguments: \"fc.tmp_0@GRAD\""}},
                "operator send: \"fc.tmp_0@GRAD\" is not the gradient of a parameter"}),
    [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace millrace
