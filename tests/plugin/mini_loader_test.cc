// examples/mini_loader: its operators read what part files say, in the order that its attributes ask for, and a program
// that they feed learns what is in the files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/file.h"
#include "ops/builtin_ops.h"
#include "paths.h"
#include "plugin/plugin_loader.h"
#include "plugin/test_plugins.h"
#include "program/program_files.h"
#include "runtime/frame.h"
#include "threads_now.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What failures of the reader begin with.
const std::string kPlugin = "op[0] MiniReader (out: \"record\"): plugin \"" + TestPlugin("mini_loader") + "\": ";

const std::string kExample = SourceDir() + "/examples/mini_loader";

class MiniLoaderTest : public testing::Test {
 protected:
  MiniLoaderTest() : folder_(TempDir::Create("mini_loader").value()) {
    RegisterBuiltinOps(ops_);
    const Status status = LoadPlugin(TestPlugin("mini_loader"), &registries_);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  /// Rows "I,-I" with I from `first` on.
  void WritePart(const std::string& name, int first, int rows) const {
    std::ofstream out(folder_.path() + "/" + name);
    for (int i = first; i < first + rows; ++i) out << i << ',' << -i << '\n';
  }
  std::string Reader(const std::string& attrs) const {
    return "blocks { idx: 0 parent_idx: -1 vars { name: \"record\" type { type: LOD_TENSOR lod_tensor { tensor { "
           "data_type: FP64 dims: -1 dims: 2 } } } } ops { type: \"MiniReader\" outputs { parameter: \"out\" "
           "arguments: "
           "\"record\" } attrs { name: \"data_dir\" type: STRING s: \"" +
           folder_.path() + "\" } " + attrs + " } }";
  }
  struct Session {
    std::unique_ptr<const Executable> executable;
    Scope root;
    std::unique_ptr<Frame> frame;
  };
  Result<std::unique_ptr<Session>> Open(const std::string& program, int worker = 0, int workers = 1,
                                        uint64_t seed = 1) const {
    auto session = std::make_unique<Session>();
    MR_ASSIGN(const ProgramDesc desc, ParseProgram(program, "program"));
    CompileOptions options;
    options.fetches = {"record"};
    MR_ASSIGN(session->executable, Executable::Compile(desc, ops_, options));
    FrameOptions frame;
    frame.worker = worker;
    frame.workers = workers;
    frame.seed = seed;
    MR_ASSIGN(session->frame, Frame::Create(*session->executable, nullptr, session->root, frame));
    return session;
  }
  /// The first column of the next `batches` batches; a row whose second one does not fit fails the test.
  static Result<std::vector<int>> Read(Session& session, int batches) {
    std::vector<int> rows;
    for (int i = 0; i < batches; ++i) {
      MR_TRY(session.frame->Run({}));
      const Tensor& record = session.frame->Find("record")->Get<Tensor>();
      EXPECT_EQ(record.dims()[1], 2);
      for (int64_t row = 0; row < record.dims()[0]; ++row) {
        rows.push_back(static_cast<int>(record.data<double>()[2 * row]));
        EXPECT_EQ(record.data<double>()[2 * row + 1], -rows.back());
      }
    }
    return rows;
  }
  Result<std::vector<int>> Rows(const std::string& attrs, int batches, uint64_t seed = 1) const {
    MR_ASSIGN(const std::unique_ptr<Session> session, Open(Reader(attrs), 0, 1, seed));
    return Read(*session, batches);
  }

  const TempDir folder_;
  Registries registries_;
  OpRegistry& ops_ = registries_.ops;
};

std::string Int(const std::string& name, int64_t value) {
  return "attrs { name: \"" + name + "\" type: INT i: " + std::to_string(value) + " } ";
}
std::string True(const std::string& name) { return "attrs { name: \"" + name + "\" type: BOOLEAN b: true } "; }

TEST_F(MiniLoaderTest, ReadsTheLinesOfThePartsInOrderAgainAndAgain) {
  WritePart("part-000", 1, 3);
  WritePart("part-001", 4, 2);
  const std::string attrs = Int("data_part_num", 2) + Int("part_name_suffix_length", 3) + Int("batch_size", 4);
  EXPECT_THAT(Rows(attrs, 3).value(), ElementsAre(1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2));
}

TEST_F(MiniLoaderTest, PartsAreNamedByPrefixAndDigits) {
  WritePart("part-0", 1, 1);
  WritePart("part-0000", 2, 1);
  WritePart("day_00", 3, 1);
  const std::string prefix = "attrs { name: \"part_name_prefix\" type: STRING s: \"day_\" } ";
  const std::string one = Int("batch_size", 1);
  EXPECT_THAT(Rows(one, 1).value(), ElementsAre(1));
  EXPECT_THAT(Rows(one + Int("part_name_suffix_length", 4), 1).value(), ElementsAre(2));
  EXPECT_THAT(Rows(one + prefix + Int("part_name_suffix_length", 2), 1).value(), ElementsAre(3));
  for (int part = 1; part < 11; ++part) WritePart("part-" + std::to_string(part), 1 + part, 1);
  EXPECT_EQ(Rows(one + Int("data_part_num", 11), 11).value().back(), 11);
}

TEST_F(MiniLoaderTest, RandomShuffleDrawsFromItsBufferBySeed) {
  WritePart("part-0", 1, 10);
  const std::string attrs = True("random_shuffle") + Int("shuffle_buffer_size", 4) + Int("batch_size", 100);
  const std::vector<int> rows = Rows(attrs + Int("seed", 5), 5).value();
  EXPECT_EQ(Rows(attrs + Int("seed", 5), 5).value(), rows);
  EXPECT_NE(Rows(attrs + Int("seed", 6), 5).value(), rows);
  EXPECT_EQ(Rows(attrs, 5, 5).value(), rows) << "without a seed of its own, the operator takes the job's";
  std::map<int, int> counts;
  for (const int row : rows) ++counts[row];
  ASSERT_EQ(counts.size(), 10U);
  for (const auto& [row, count] : counts) EXPECT_NEAR(count, 50, 4) << "row " << row << ": more than the buffer holds";
  // The first rows can come from the first four lines alone.
  EXPECT_LE(rows[0], 4);
  EXPECT_LE(rows[1], 5);
}

TEST_F(MiniLoaderTest, ShuffleAfterEpochReadsThePartsInAnotherOrder) {
  for (int part = 0; part < 4; ++part) WritePart("part-" + std::to_string(part), 10 * part, 2);
  const std::string attrs = Int("data_part_num", 4) + Int("batch_size", 8) + True("shuffle_after_epoch");
  const std::vector<int> rows = Rows(attrs, 20).value();
  std::map<std::string, int> orders;
  for (size_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<int> of_epoch(rows.begin() + static_cast<std::ptrdiff_t>(8 * epoch),
                              rows.begin() + static_cast<std::ptrdiff_t>(8 * epoch + 8));
    ++orders[testing::PrintToString(of_epoch)];
    if (epoch == 0) {
      EXPECT_THAT(of_epoch, ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
    }
    for (size_t i = 0; i < 8; i += 2) EXPECT_EQ(of_epoch[i] + 1, of_epoch[i + 1]) << "lines of a part stay in order";
    std::sort(of_epoch.begin(), of_epoch.end());
    EXPECT_THAT(of_epoch, ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
  }
  EXPECT_GT(orders.size(), 5U);
}

TEST_F(MiniLoaderTest, WorkersReadPartsOfTheirOwn) {
  for (int part = 0; part < 3; ++part) WritePart("part-" + std::to_string(part), 10 * part, 1);
  const std::string program = Reader(Int("data_part_num", 3) + Int("batch_size", 2));
  EXPECT_THAT(Read(*Open(program, 0, 2).value(), 1).value(), ElementsAre(0, 20));
  EXPECT_THAT(Read(*Open(program, 1, 2).value(), 1).value(), ElementsAre(10, 10));
  EXPECT_EQ(Open(program, 3, 4).status().message(),
            kPlugin +
                "each worker reads parts of its own: 4 workers need as many parts, and data_part_num is "
                "3");
}

TEST_F(MiniLoaderTest, MistakesAreNamed) {
  const std::string one = Int("batch_size", 1);
  WritePart("part-0", 1, 1);
  EXPECT_THAT(Rows(Int("batch_size", 0), 1).status().message(),
              HasSubstr("MiniReader (out: \"record\"): batch_size must be positive, not 0"));
  EXPECT_THAT(Rows(Int("data_part_num", 2) + one, 1).status().message(),
              HasSubstr(kPlugin + "no file \"" + folder_.path() + "/part-1\", part 1 of 2"));
  EXPECT_THAT(Rows(Int("data_part_num", 0) + one, 1).status().message(),
              HasSubstr("data_part_num must be positive, not 0"));
  std::ofstream(folder_.path() + "/part-0") << "1,2\n3;4\n";
  EXPECT_EQ(Rows(Int("batch_size", 2), 1).status().message(),
            kPlugin + folder_.path() + "/part-0:2: expected two numbers with a comma between them, found \"3;4\"");
  std::filesystem::create_directory(folder_.path() + "/part-1");
  EXPECT_EQ(Rows(Int("data_part_num", 2) + one, 1).status().message(),
            kPlugin + "\"" + folder_.path() + "/part-1\", part 1 of 2, is a folder, not a file");
  std::ofstream(folder_.path() + "/part-0") << "";
  EXPECT_THAT(Rows(one, 1).status().message(), HasSubstr("part-0\" and the parts behind it hold no line"));
}

// It ran with batches of one row.
TEST_F(MiniLoaderTest, ABatchSizeThatIsLeftOutIsMissed) {
  WritePart("part-0", 1, 1);
  EXPECT_EQ(Rows("", 1).status().message(),
            "block 0 op[0] MiniReader: attribute \"batch_size\" is missing: rows of out");
}

TEST_F(MiniLoaderTest, ShapesAreInferredBeforeAnythingRuns) {
  const auto var = [](const std::string& name, int columns, const std::string& more) {
    return "vars { name: \"" + name +
           "\" type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP64 dims: -1 dims: " +
           std::to_string(columns) + " } } } " + more + "} ";
  };
  const std::string vars = "blocks { idx: 0 parent_idx: -1 " + var("record", 2, "") + var("x", 1, "") +
                           var("y", 1, "") + var("three", 3, "need_check_feed: true ");
  const auto decode = [](const std::string& from) {
    return "ops { type: \"mini_decoder\" inputs { parameter: \"in\" arguments: \"" + from +
           "\" } outputs { parameter: \"x\" arguments: \"x\" } outputs { parameter: \"y\" arguments: \"y\" } } }";
  };
  CompileOptions options;
  options.fetches = {"x", "y"};
  const auto compile = [&](const std::string& ops) {
    return Executable::Compile(ParseProgram(vars + ops, "program").value(), ops_, options);
  };
  const auto made = compile(
      "ops { type: \"MiniReader\" outputs { parameter: \"out\" arguments: \"record\" } "
      "attrs { name: \"data_dir\" type: STRING s: \"parts\" } " +
      Int("batch_size", 5) + "} " + decode("record"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ((*made)->vars().at("record").dims.ToString(), "[5, 2]");
  EXPECT_EQ((*made)->vars().at("record").dtype, DType::kFloat64);
  EXPECT_EQ((*made)->vars().at("x").dims.ToString(), "[5, 1]");
  EXPECT_EQ((*made)->vars().at("y").dims.ToString(), "[5, 1]");
  EXPECT_THAT(compile(decode("three")).status().message(), HasSubstr("input in: expected two columns, found [-1, 3]"));
}

TEST_F(MiniLoaderTest, LargeBatchesArePutTogetherByThreadsWhichEndWithTheFrame) {
  WritePart("part-0", 0, 10000);
  const int before = ThreadsNow();
  {
    const std::unique_ptr<Session> session = Open(Reader(Int("batch_size", 10000))).value();
    const std::vector<int> rows = Read(*session, 2).value();
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], static_cast<int>(i % 10000));
    EXPECT_GT(ThreadsNow(), before);
  }
  EXPECT_EQ(ThreadsOnce(before), before);
}

/// Runs the example's program on part files of `data`; the weight and the bias that it learned.
Result<std::pair<float, float>> Learn(const OpRegistry& ops, const std::string& data, int parts, int batch_size,
                                      int rounds) {
  MR_ASSIGN(const ProgramDesc startup, ReadProgram(kExample + "/startup.pbtxt"));
  MR_ASSIGN(ProgramDesc main, ReadProgram(kExample + "/main.pbtxt"));
  for (BlockDesc& block : *main.mutable_blocks()) {
    for (OpDesc& op : *block.mutable_ops()) {
      if (op.type() == "fill_constant" && OutputArguments(op, "Out")[0] == "n") {
        SetAttr(op, "value", static_cast<float>(rounds));
      }
      if (op.type() != "MiniReader") continue;
      SetAttr(op, "data_dir", data);
      SetAttr(op, "data_part_num", int64_t{parts});
      SetAttr(op, "batch_size", int64_t{batch_size});
    }
    for (VarDesc& var : *block.mutable_vars()) {
      auto& dims = *var.mutable_type()->mutable_lod_tensor()->mutable_tensor()->mutable_dims();
      if (!dims.empty() && dims[0] == 9) dims[0] = batch_size;
    }
  }
  Scope root;
  MR_TRY(RunStartup(startup, ops, root, 1));
  MR_ASSIGN(const auto executable, Executable::Compile(main, ops, {}));
  MR_ASSIGN(const auto frame, Frame::Create(*executable, nullptr, root, {}));
  MR_TRY(frame->Run({}));
  return std::pair(root.Find("w")->Get<Tensor>().data<float>()[0], root.Find("b")->Get<Tensor>().data<float>()[0]);
}

TEST_F(MiniLoaderTest, ARegressionThatItFeedsFindsTheLineOfLeastSquares) {
  const auto learned = Learn(ops_, kExample + "/data", 2, 9, 4000);
  ASSERT_TRUE(learned.ok()) << learned.status().message();
  EXPECT_NEAR(learned->first, 2.008087, 0.02);
  EXPECT_NEAR(learned->second, 0.002143, 0.1);
}

TEST_F(MiniLoaderTest, TheSameOnTheIrisData) {
  const std::string data = "/data/mini_reader/iris";
  const char* shared = std::getenv("MILLRACE_SHARED");
  if (shared == nullptr || !std::filesystem::exists(shared + data)) GTEST_SKIP() << "MILLRACE_SHARED has no " << data;
  const auto learned = Learn(ops_, shared + data, 3, 150, 2000);
  ASSERT_TRUE(learned.ok()) << learned.status().message();
  EXPECT_NEAR(learned->first, 0.415755, 0.01);
  EXPECT_NEAR(learned->second, -0.363076, 0.04);
}

}  // namespace
}  // namespace millrace
