#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "core/sealed_text.h"
#include "ops/registry.h"
#include "program/feed_fetch.h"
#include "serving/predictor.h"

namespace millrace {
namespace {

using testing::HasSubstr;

OpDesc MakeOp(const std::string& type, const std::string& in, const std::vector<std::string>& from,
              const std::string& out, const std::vector<std::string>& to) {
  OpDesc op;
  op.set_type(type);
  if (!from.empty()) SetInput(op, in, from);
  if (!to.empty()) SetOutput(op, out, to);
  return op;
}

OpDesc Running(OpDesc op, int block) {
  OpDesc::Attr* attr = op.add_attrs();
  attr->set_name("sub_block");
  attr->set_type(BLOCK);
  attr->set_block_idx(block);
  return op;
}

/// A model of Paddle in a folder of its own: slot "x" [-1, 2] in, "y" out.
class ForeignModel {
 public:
  ForeignModel() {
    BlockDesc* block = program_.add_blocks();
    block->set_idx(0);
    block->set_parent_idx(-1);
    Declare("x", {-1, 2});
    Declare("y", {-1, 2});
  }
  std::string path(const std::string& name = "") const { return folder_.path() + (name.empty() ? "" : "/" + name); }
  ProgramDesc& program() { return program_; }
  VarDesc* Declare(const std::string& name, const std::vector<int64_t>& dims, VarType::Type type = VarType::FP32) {
    VarDesc* var = program_.mutable_blocks(0)->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(VarType::LOD_TENSOR);
    auto* tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    tensor->set_data_type(type);
    for (const int64_t size : dims) tensor->add_dims(size);
    return var;
  }
  void Add(const OpDesc& op, int block = 0) { *program_.mutable_blocks(block)->add_ops() = op; }
  int AddBlock() {
    BlockDesc* block = program_.add_blocks();
    block->set_idx(program_.blocks_size() - 1);
    block->set_parent_idx(0);
    return block->idx();
  }
  void Write() {
    ProgramDesc whole = program_;
    AddFeedFetch({{"x"}, {"y"}}, whole);
    std::ofstream(path("model.pdmodel"), std::ios::binary) << whole.SerializeAsString();
  }
  /// The scores of eight rows, or why there are none.
  Status Score(const std::stop_token& stop = {}) {
    Write();
    MR_ASSIGN(const auto predictor, Predictor::Load(path(), AllOps(), {}));
    MR_ASSIGN(const auto session, PredictSession::Create(*predictor, predictor->schema(), 8));
    SlotBatch batch(predictor->schema());
    batch.column(0).floats.assign(16, 0.5F);
    batch.set_rows(8);
    return session->Run(batch, stop).status();
  }

 private:
  TempDir folder_ = TempDir::Create("foreign_model").value();
  ProgramDesc program_;
};

TEST(ForeignModel, ScoresRows) {
  ForeignModel model;
  model.Add(MakeOp("sigmoid", "X", {"x"}, "Out", {"y"}));
  const Status scored = model.Score();
  EXPECT_TRUE(scored.ok()) << scored.message();
}

TEST(ForeignModel, NamesThatATerminalWouldObeyAreShown) {
  ForeignModel model;
  model.Add(MakeOp("sigmoid\x1b[2J", "X", {"x"}, "Out", {"y"}));
  EXPECT_THAT(model.Score().message(), HasSubstr("op[0] sigmoid\\x1b[2J: no such operator"));
}

TEST(ForeignModel, APredictionOfAnotherShapeThanTheBatchIsRefused) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{0}, {8, 0}, {400, 1}, {16}}) {
    ForeignModel model;
    OpDesc fill = MakeOp("fill_constant", "", {}, "Out", {"y"});
    SetAttr(fill, "shape", shape);
    model.Add(fill);
    const Status scored = model.Score();
    EXPECT_EQ(scored.code(), StatusCode::kInvalidConfig) << Dims(shape).ToString();
    EXPECT_THAT(scored.message(), HasSubstr("\"y\" is " + Dims(shape).ToString() + " for 8 rows"));
  }
}

TEST(ForeignModel, APredictionThatNamesATableIsRefused) {
  ForeignModel model;
  model.Add(MakeOp("sigmoid", "X", {"x"}, "Out", {"z"}));
  for (VarDesc& var : *model.program().mutable_blocks(0)->mutable_vars()) {
    if (var.name() == "y") var.mutable_type()->set_type(VarType::SPARSE_TABLE);
  }
  EXPECT_THAT(model.Score().message(), HasSubstr("the model predicts \"y\", which is no tensor"));
}

TEST(ForeignModel, APredictionThatNothingComputesIsRefused) {
  ForeignModel model;
  model.Add(MakeOp("sigmoid", "X", {"x"}, "Out", {"z"}));
  EXPECT_THAT(model.Score().message(), HasSubstr("which none of its operators computes"));
}

/// y = sigmoid(x), and beside it a loop that runs once with `op` in its block.
std::unique_ptr<ForeignModel> WithInLoop(const OpDesc& op) {
  auto model = std::make_unique<ForeignModel>();
  model->Declare("one", {1});
  model->Declare("goes_on", {1}, VarType::BOOL);
  model->Declare("w", {1});
  for (const char* name : {"one", "w"}) {
    OpDesc fill = MakeOp("fill_constant", "", {}, "Out", {name});
    SetAttr(fill, "shape", std::vector<int64_t>{1});
    SetAttr(fill, "value", 1.0F);
    model->Add(fill);
  }
  OpDesc less = MakeOp("less_equal", "X", {"one"}, "Out", {"goes_on"});
  SetInput(less, "Y", {"w"});
  model->Add(less);
  const int block = model->AddBlock();
  model->Add(Running(MakeOp("while", "Condition", {"goes_on"}, "Out", {"w", "y"}), block));
  model->Add(op, block);
  OpDesc more = MakeOp("increment", "X", {"one"}, "Out", {"one"});
  model->Add(more, block);
  model->Add(less, block);
  model->Add(MakeOp("sigmoid", "X", {"x"}, "Out", {"y"}), block);
  return model;
}

TEST(ForeignModel, OperatorsThatTouchFilesOrPrintAreRefusedInABlock) {
  const TempDir elsewhere = TempDir::Create("elsewhere").value();
  OpDesc save = MakeOp("save", "X", {"w"}, "", {});
  SetAttr(save, "file_path", elsewhere.path() + "/written");
  OpDesc load = MakeOp("load", "", {}, "Out", {"w"});
  SetAttr(load, "file_path", std::string("/etc/hostname"));
  for (const auto& [op, what] : {std::pair{save, "save: it writes a file"}, std::pair{load, "load: it reads a file"},
                                 std::pair{MakeOp("print", "In", {"w"}, "Out", {"w"}), "print: it prints"}}) {
    const auto model = WithInLoop(op);
    const Status scored = model->Score();
    EXPECT_EQ(scored.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(scored.message(), HasSubstr("block 1 op[0] " + std::string(what)));
  }
  EXPECT_FALSE(std::filesystem::exists(elsewhere.path() + "/written"));
  const Status harmless = WithInLoop(MakeOp("sigmoid", "X", {"w"}, "Out", {"v"}))->Score();
  EXPECT_TRUE(harmless.ok()) << harmless.message();
}

TEST(ForeignModel, EveryOperatorWithAFilesNameHasAnEffect) {
  for (const OpInfo* op : AllOps().all()) {
    for (const AttrInfo& attr : op->attrs) {
      const bool names_file = attr.name.find("file") != std::string::npos;
      EXPECT_TRUE(!names_file || !op->effect.empty()) << op->type << " has " << attr.name;
    }
  }
}

TEST(ForeignModel, FilesOutsideItsFolderAreRefused) {
  const TempDir elsewhere = TempDir::Create("elsewhere").value();
  const auto model = [](ForeignModel& m) { m.Add(MakeOp("sigmoid", "X", {"x"}, "Out", {"y"})); };
  {
    ForeignModel linked;
    model(linked);
    linked.Write();
    std::filesystem::rename(linked.path("model.pdmodel"), elsewhere.path() + "/model");
    std::filesystem::create_symlink(elsewhere.path() + "/model", linked.path("model.pdmodel"));
    const auto loaded = Predictor::Load(linked.path(), AllOps(), {});
    EXPECT_EQ(loaded.status().code(), StatusCode::kBadData);
    EXPECT_THAT(loaded.status().message(), HasSubstr("outside the folder"));
  }
  {
    ForeignModel piped;
    model(piped);
    piped.Write();
    ASSERT_EQ(::mkfifo(piped.path("model.data_feed.prototxt").c_str(), 0600), 0);
    const auto loaded = Predictor::Load(piped.path(), AllOps(), {});
    EXPECT_EQ(loaded.status().code(), StatusCode::kBadData);
    EXPECT_THAT(loaded.status().message(), HasSubstr("is a named pipe, and a plain file belongs there"));
  }
  {
    ForeignModel named;  // of Paddle 1: a file for each variable, by its name
    named.Declare("../w", {1})->set_persistable(true);
    OpDesc add = MakeOp("elementwise_add", "X", {"x"}, "Out", {"y"});
    SetInput(add, "Y", {"../w"});
    named.Add(add);
    named.Write();
    std::filesystem::rename(named.path("model.pdmodel"), named.path("__model__"));
    const auto loaded = Predictor::Load(named.path(), AllOps(), {});
    EXPECT_THAT(loaded.status().message(), HasSubstr("\"../w\", which lies outside it"));
  }
  for (const char* file : {"../secret", "/etc/hostname", "a/../../secret"}) {
    const TempDir own = TempDir::Create("own_model").value();
    std::ofstream(own.path() + "/MODEL") << SealText("format_version: 1 file { name: \"" + std::string(file) +
                                                     "\" }\n");
    const auto loaded = Predictor::Load(own.path(), AllOps(), {});
    EXPECT_EQ(loaded.status().code(), StatusCode::kBadData);
    EXPECT_THAT(loaded.status().message(), HasSubstr("\"" + std::string(file) + "\", which lies outside it"));
  }
  const TempDir own = TempDir::Create("own_model").value();
  ASSERT_EQ(::mkfifo((own.path() + "/MODEL").c_str(), 0600), 0);
  EXPECT_THAT(Predictor::Load(own.path(), AllOps(), {}).status().message(), HasSubstr("is a named pipe"));
}

TEST(ForeignModel, ALinkToItselfIsNamed) {
  for (const char* file : {"MODEL", "model.pdmodel", "__model__"}) {
    const TempDir own = TempDir::Create("own_model").value();
    std::filesystem::create_symlink(file, own.path() + "/" + file);
    const auto loaded = Predictor::Load(own.path(), AllOps(), {});
    EXPECT_EQ(loaded.status().code(), StatusCode::kBadData) << file;
    EXPECT_THAT(loaded.status().message(), HasSubstr(std::string(file) + "\": Too many levels of symbolic links"));
  }
}

TEST(ForeignModel, ALinkToNothingIsNamedAlsoOfAFileThatMayBeLeftOut) {
  ForeignModel model;
  model.Add(MakeOp("sigmoid", "X", {"x"}, "Out", {"y"}));
  std::filesystem::create_symlink("nowhere", model.path("model.data_feed.prototxt"));
  EXPECT_THAT(model.Score().message(),
              HasSubstr(model.path("model.data_feed.prototxt") + "\" is a link to a file that is not there"));
}

TEST(ForeignModel, AFolderMayBeALink) {
  ForeignModel model;
  model.Add(MakeOp("sigmoid", "X", {"x"}, "Out", {"y"}));
  model.Write();
  const TempDir elsewhere = TempDir::Create("elsewhere").value();
  std::filesystem::create_directory_symlink(model.path(), elsewhere.path() + "/link");
  const auto loaded = Predictor::Load(elsewhere.path() + "/link", AllOps(), {});
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
}

TEST(ForeignModel, AStopEndsALoopAndTheLoading) {
  const auto model = WithInLoop(MakeOp("sigmoid", "X", {"x"}, "Out", {"z"}));
  std::stop_source stop;
  const Status scored = model->Score(stop.get_token());
  ASSERT_TRUE(scored.ok()) << scored.message();
  stop.request_stop();
  EXPECT_EQ(model->Score(stop.get_token()).code(), StatusCode::kCancelled);
  PredictorOptions options;
  options.stop = stop.get_token();
  EXPECT_EQ(Predictor::Load(model->path(), AllOps(), options).status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace millrace
