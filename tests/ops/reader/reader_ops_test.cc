#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "datafeed/builtin_formats.h"
#include "ops/registry.h"
#include "reader/reader_holder.h"
#include "reader/reader_registry.h"
#include "reader/recordio.h"
#include "runtime/frame.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReaderVar(const std::string& name) {
  return "vars { name: \"" + name + "\" persistable: true type { type: READER } }\n";
}

std::string TensorVar(const std::string& name, const std::string& type, const std::string& dims) {
  return "vars { name: \"" + name + "\" type { type: LOD_TENSOR lod_tensor { tensor { data_type: " + type + " " + dims +
         " } } } }\n";
}

std::string ReaderOp(const std::string& type, const std::string& out, const std::string& attrs,
                     const std::string& underlying = "") {
  const std::string inputs =
      underlying.empty() ? "" : "inputs { parameter: \"UnderlyingReader\" arguments: \"" + underlying + "\" } ";
  return "ops { type: \"" + type + "\" " + inputs + "outputs { parameter: \"Out\" arguments: \"" + out + "\" } " +
         attrs + " }\n";
}

std::string IntAttr(const std::string& name, int64_t value) {
  return "attrs { name: \"" + name + "\" type: INT i: " + std::to_string(value) + " } ";
}

constexpr char kTwoColumns[] =
    "attrs { name: \"shape_concat\" type: INTS ints: -1 ints: 1 ints: -1 ints: 1 } attrs { name: \"ranks\" type: INTS "
    "ints: 2 ints: 2 } attrs { name: \"dtypes\" type: INTS ints: 5 ints: 3 } ";

constexpr char kRead[] =
    "ops { type: \"read\" inputs { parameter: \"Reader\" arguments: \"r\" } outputs { parameter: \"Out\" arguments: "
    "\"x\" arguments: \"y\" } ";

/// A program of one reader "r" over a file of rows "i,10 * i" for i from 0 to 9.
class ReaderOps : public testing::Test {
 protected:
  ReaderOps() {
    std::ofstream out(file_);
    for (int i = 0; i < 10; ++i) out << i << ',' << 10 * i << '\n';
    EXPECT_TRUE(AddBuiltinFormats(&formats_).ok());
  }

  static ProgramDesc Program(const std::string& body) {
    ProgramDesc program;
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString("blocks { idx: 0 parent_idx: -1\n" + body + "}", &program))
        << body;
    return program;
  }
  std::string OpenFiles(const std::string& out, const std::string& attrs = kTwoColumns) const {
    return ReaderOp("open_files", out,
                    attrs + ("attrs { name: \"file_names\" type: STRINGS strings: \"" + file_ + "\" }"));
  }
  Status Start(const std::string& body) { return RunStartup(Program(body), AllOps(), root_, 1, &formats_); }
  /// The main program: reads x and y, both declared as `x_type` [-1, 1] and INT64 [-1, 1].
  Result<std::unique_ptr<Frame>> MakeFrame(const std::string& ops, const std::string& x_type = "FP32") {
    const ProgramDesc program =
        Program(ReaderVar("r") + TensorVar("x", x_type, "dims: -1 dims: 1") +
                TensorVar("y", "INT64", "dims: -1 dims: 1") + TensorVar("more", "BOOL", "dims: 1") + ops);
    MR_ASSIGN(executable_, Executable::Compile(program, AllOps(), {}));
    return Frame::Create(*executable_, nullptr, root_, {});
  }
  static std::vector<float> Values(const Frame& frame, const std::string& name) {
    const Tensor& tensor = frame.Find(name)->Get<Tensor>();
    std::vector<float> values;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      values.push_back(tensor.dtype() == DType::kFloat32 ? tensor.data<float>()[i]
                                                         : static_cast<float>(tensor.data<int64_t>()[i]));
    }
    return values;
  }
  std::string StartError(const std::string& body) {
    Scope root;
    return RunStartup(Program(body), AllOps(), root, 1, &formats_).message();
  }

  TempDir folder_ = TempDir::Create("reader_ops").value();
  std::string file_ = folder_.path() + "/rows.csv";
  ReaderRegistry formats_;
  Scope root_;
  std::unique_ptr<const Executable> executable_;
};

TEST_F(ReaderOps, ReadBatchesThroughEveryDecorator) {
  const std::string startup = ReaderVar("files") + ReaderVar("batches") + ReaderVar("passes") + ReaderVar("r") +
                              OpenFiles("files") +
                              ReaderOp("create_batch_reader", "batches", IntAttr("batch_size", 4), "files") +
                              ReaderOp("create_multi_pass_reader", "passes", IntAttr("pass_num", 2), "batches") +
                              ReaderOp("create_double_buffer_reader", "r", "", "passes");
  ASSERT_TRUE(Start(startup).ok());
  ASSERT_TRUE(Start(startup).ok()) << "creation runs once; the second time changes nothing";
  const auto frame = MakeFrame(std::string(kRead) + "}\n").value();
  for (int pass = 0; pass < 2; ++pass) {
    ASSERT_TRUE(frame->Run({}).ok());
    EXPECT_THAT(Values(*frame, "x"), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(Values(*frame, "y"), ElementsAre(0, 10, 20, 30));
    ASSERT_TRUE(frame->Run({}).ok());
    ASSERT_TRUE(frame->Run({}).ok());
    EXPECT_THAT(Values(*frame, "x"), ElementsAre(8, 9));
  }
  EXPECT_EQ(
      frame->Run({}).message(),
      "op[0] read (Out: \"x\"): the reader is at its end after 6 items: ask has_next first, reset it, or read with "
      "throw_eof_exp: false");
}

TEST_F(ReaderOps, HasNextAndReset) {
  ASSERT_TRUE(Start(ReaderVar("files") + ReaderVar("r") + OpenFiles("files") +
                    ReaderOp("create_batch_reader", "r", IntAttr("batch_size", 6), "files"))
                  .ok());
  const std::string has_next =
      "ops { type: \"has_next\" inputs { parameter: \"Reader\" arguments: \"r\" } outputs { parameter: \"Out\" "
      "arguments: \"more\" } }\n";
  const auto frame = MakeFrame(std::string(kRead) + "}\n" + has_next).value();
  const auto run = [&] {
    EXPECT_TRUE(frame->Run({}).ok());
    return *frame->Find("more")->Get<Tensor>().data<bool>();
  };
  EXPECT_TRUE(run());
  EXPECT_FALSE(run());
  const auto reset = MakeFrame("ops { type: \"reset\" inputs { parameter: \"Reader\" arguments: \"r\" } }\n" +
                               std::string(kRead) + "}\n")
                         .value();
  ASSERT_TRUE(reset->Run({}).ok());
  EXPECT_THAT(Values(*reset, "x"), ElementsAre(0, 1, 2, 3, 4, 5));
  ASSERT_TRUE(reset->Run({}).ok());
  EXPECT_THAT(Values(*reset, "x"), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(ReaderOps, ReadShowsTheEndAsTensorsWithoutRowsWhenAsked) {
  ASSERT_TRUE(Start(ReaderVar("r") + OpenFiles("r")).ok());
  const auto frame =
      MakeFrame(std::string(kRead) + "attrs { name: \"throw_eof_exp\" type: BOOLEAN b: false } }\n").value();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(frame->Run({}).ok());
    EXPECT_THAT(Values(*frame, "y"), ElementsAre(10 * i));
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(frame->Run({}).ok());
    EXPECT_EQ(frame->Find("x")->Get<Tensor>().dims(), (Dims{0, 1}));
    EXPECT_EQ(frame->Find("y")->Get<Tensor>().dtype(), DType::kInt64);
  }
}

TEST_F(ReaderOps, ShuffleByTheirSeedOrTheJobs) {
  const auto order = [&](int64_t attr, uint64_t job_seed) {
    Scope root;
    const ProgramDesc startup =
        Program(ReaderVar("files") + ReaderVar("rows") + ReaderVar("r") + OpenFiles("files") +
                ReaderOp("create_shuffle_reader", "rows", IntAttr("buffer_size", 10) + IntAttr("seed", attr), "files") +
                ReaderOp("create_batch_reader", "r", IntAttr("batch_size", 10), "rows"));
    EXPECT_TRUE(RunStartup(startup, AllOps(), root, job_seed, &formats_).ok());
    std::vector<LoDTensor> item;
    EXPECT_TRUE(root.Var("r")->GetMutable<ReaderHolder>()->ReadNext(&item, EndOfData::kError, {}).ok());
    return std::vector<float>(item[0].values.data<float>(), item[0].values.data<float>() + 10);
  };
  EXPECT_EQ(order(5, 1), order(5, 2));
  EXPECT_NE(order(5, 1), order(6, 1));
  EXPECT_EQ(order(0, 1), order(0, 1));
  EXPECT_NE(order(0, 1), order(0, 2));
}

TEST_F(ReaderOps, MakeUpRandomData) {
  ASSERT_TRUE(
      Start(ReaderVar("r") +
            ReaderOp("create_random_data_generator", "r",
                     "attrs { name: \"low\" type: FLOAT f: 2 } attrs { name: \"high\" type: FLOAT f: 3 } attrs { "
                     "name: \"shape_concat\" type: INTS ints: 3 ints: 1 ints: 1 } attrs { name: \"ranks\" type: "
                     "INTS ints: 2 ints: 1 }"))
          .ok());
  std::vector<LoDTensor> item;
  ASSERT_TRUE(root_.Var("r")->GetMutable<ReaderHolder>()->ReadNext(&item, EndOfData::kError, {}).ok());
  ASSERT_EQ(item.size(), 2U);
  EXPECT_EQ(item[0].values.dims(), (Dims{3, 1}));
  EXPECT_GE(item[0].values.data<float>()[0], 2);
  EXPECT_LT(item[0].values.data<float>()[0], 3);
}

TEST_F(ReaderOps, ReadARecordIOFile) {
  const std::string path = folder_.path() + "/rows.recordio";
  RecordIOWriter writer = RecordIOWriter::Create(path).value();
  std::vector<LoDTensor> record(2);
  record[0].values.Resize<float>({1, 1})[0] = 0.5F;
  record[1].values.Resize<int64_t>({1, 1})[0] = 7;
  ASSERT_TRUE(writer.Append(record).ok());
  ASSERT_TRUE(writer.Finish().ok());
  ASSERT_TRUE(
      Start(ReaderVar("r") + ReaderOp("create_recordio_file_reader", "r",
                                      kTwoColumns + ("attrs { name: \"filename\" type: STRING s: \"" + path + "\" }")))
          .ok());
  const auto frame = MakeFrame(std::string(kRead) + "}\n").value();
  ASSERT_TRUE(frame->Run({}).ok());
  EXPECT_THAT(Values(*frame, "x"), ElementsAre(0.5));
  EXPECT_THAT(Values(*frame, "y"), ElementsAre(7));
}

TEST_F(ReaderOps, NameWhatIsWrongWithTheirAttributes) {
  const std::string r = ReaderVar("r");
  EXPECT_EQ(StartError(r + OpenFiles("r", "")),
            "op[0]: open_files: attribute \"ranks\" is empty: how many axes has each output?");
  EXPECT_EQ(StartError(r + OpenFiles("r",
                                     "attrs { name: \"shape_concat\" type: INTS ints: 1 } attrs { name: \"ranks\" "
                                     "type: INTS ints: 2 } ")),
            "op[0]: open_files: attribute \"ranks\" asks for more sizes than \"shape_concat\" has: output 0 has rank "
            "2, and 1 sizes "
            "are left");
  EXPECT_EQ(StartError(r + OpenFiles("r",
                                     "attrs { name: \"shape_concat\" type: INTS ints: 1 ints: 1 } attrs { name: "
                                     "\"ranks\" type: INTS ints: 1 } ")),
            "op[0]: open_files: attribute \"shape_concat\" has 2 sizes, and the ranks use 1");
  EXPECT_EQ(
      StartError(r + OpenFiles("r", std::string(kTwoColumns) + "attrs { name: \"lod_levels\" type: INTS ints: 0 } ")),
      "op[0]: open_files: attribute \"lod_levels\" has 1 entries, and \"ranks\" has 2; there is one for each output, "
      "or none");
  EXPECT_EQ(StartError(r + OpenFiles("r", std::string(kTwoColumns) + "attrs { name: \"lod_levels\" type: INTS ints: 0 "
                                                                     "ints: 2 } ")),
            "op[0]: open_files: attribute \"lod_levels\": 2; outputs have no LoD (0) or one level (1)");
  EXPECT_THAT(StartError(r + OpenFiles("r", std::string(kTwoColumns) + IntAttr("thread_num", 0))),
              HasSubstr("op[0] open_files (Out: \"r\"): files are read by at least 1 thread, not 0"));
  EXPECT_EQ(StartError(r + OpenFiles("r", std::string(kTwoColumns) + IntAttr("buffer_size", 0))),
            "op[0]: open_files: attribute \"buffer_size\" is 0; it is at least 1");
  EXPECT_THAT(
      StartError(r + OpenFiles("r", std::string(kTwoColumns) + "attrs { name: \"format\" type: STRING s: \"cvs\" } ")),
      HasSubstr("no file format \"cvs\"; did you mean \"csv\"?"));
  EXPECT_THAT(StartError(r + ReaderOp("open_files", "r", kTwoColumns)), HasSubstr("there are no files to open"));
  Scope root;
  EXPECT_EQ(RunStartup(Program(r + OpenFiles("r")), AllOps(), root, 1).message(),
            "op[0]: this program cannot open files: it was given no file formats");
}

// A batch of one, a buffer of one and one pass are what nobody asks a decorator for.
TEST_F(ReaderOps, RefuseToDoNothingBecauseAnAttributeIsNotGiven) {
  const std::string files = ReaderVar("files") + ReaderVar("r") + OpenFiles("files");
  const std::vector<std::pair<std::string, std::string>> decorators = {{"create_batch_reader", "batch_size"},
                                                                       {"create_shuffle_reader", "buffer_size"},
                                                                       {"create_multi_pass_reader", "pass_num"}};
  for (const auto& [type, attribute] : decorators) {
    const std::string where = "op[1]: " + type + ": attribute \"" + attribute + "\" is ";
    EXPECT_THAT(StartError(files + ReaderOp(type, "r", "", "files")),
                HasSubstr("block 0 op[1] " + type + ": attribute \"" + attribute + "\" is missing: "));
    EXPECT_EQ(StartError(files + ReaderOp(type, "r", IntAttr(attribute, 0), "files")), where + "0; it is at least 1");
    EXPECT_EQ(StartError(files + ReaderOp(type, "r", IntAttr(attribute, -7), "files")), where + "-7; it is at least 1");
  }
}

// The second of two creations in one variable was once passed over, and the batches with it.
TEST_F(ReaderOps, RefuseASecondReaderInOneVariable) {
  EXPECT_EQ(
      StartError(ReaderVar("a") + OpenFiles("a") + ReaderOp("create_batch_reader", "a", IntAttr("batch_size", 4), "a")),
      "op[1]: create_batch_reader: Out and UnderlyingReader are both \"a\"; give the new reader a variable of its "
      "own");
  EXPECT_EQ(StartError(ReaderVar("a") + ReaderVar("b") + ReaderVar("r") + OpenFiles("a") + OpenFiles("b") +
                       ReaderOp("create_batch_reader", "r", IntAttr("batch_size", 4), "a") +
                       ReaderOp("create_batch_reader", "r", IntAttr("batch_size", 4), "b")),
            "op[3] create_batch_reader (Out: \"r\"): another operator has made a reader in this variable; give each "
            "reader a variable of its own");
  // The same creation, from another line of a script.
  const std::string line = "attrs { name: \"op_callstack\" type: STRINGS strings: \"train.py, line ";
  for (const char* number : {"3", "7"}) {
    const Status made =
        Start(ReaderVar("again") + OpenFiles("again", std::string(kTwoColumns) + line + number + "\" }"));
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
}

TEST_F(ReaderOps, NameReadersThatCannotBeUsed) {
  EXPECT_THAT(
      StartError(ReaderVar("a") + ReaderVar("b") + ReaderVar("c") + OpenFiles("a") +
                 ReaderOp("create_batch_reader", "b", IntAttr("batch_size", 1), "a") +
                 ReaderOp("create_batch_reader", "c", IntAttr("batch_size", 1), "a")),
      HasSubstr("op[2] create_batch_reader (Out: \"c\"): UnderlyingReader \"a\": the reader has become a part of "
                "\"b\"; use that one"));
  ASSERT_TRUE(Start(ReaderVar("a") + ReaderVar("r") + OpenFiles("a") +
                    ReaderOp("create_batch_reader", "r", IntAttr("batch_size", 1), "a"))
                  .ok());
  const auto frame = MakeFrame(std::string(kRead) + "}\n", "INT64").value();
  EXPECT_EQ(frame->Run({}).message(),
            "op[0] read (Out: \"x\"): variable \"x\": wanted int64 [-1, 1], got float32 [1, 1]");
  const auto one =
      MakeFrame(
          "ops { type: \"read\" inputs { parameter: \"Reader\" arguments: \"r\" } outputs { parameter: \"Out\" "
          "arguments: \"x\" } }\n")
          .value();
  EXPECT_EQ(one->Run({}).message(), "op[0] read (Out: \"x\"): the reader delivers 2 tensors, and Out has 1 variables");
}

}  // namespace
}  // namespace millrace
