#include <glog/logging.h>
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data_feed.pb.h"
#include "far_device.h"
#include "runtime/frame.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// Out = X + amount, for floats.
class AddAmount : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    MR_ASSIGN(const Tensor* x, context.Input("X"));
    MR_ASSIGN(Tensor * out, context.Output("Out"));
    return std::unique_ptr<OpKernel>(new AddAmount(x, out, context.op().Float("amount")));
  }
  Status Run(const RunContext&) override {
    const float* x = x_->data<float>();
    float* out = out_->Resize<float>(x_->dims());
    for (int64_t i = 0; i < x_->numel(); ++i) {
      if (x[i] < 0) return BadData("a negative value: " + std::to_string(x[i]));
      out[i] = x[i] + amount_;
    }
    return Status::Ok();
  }

 private:
  AddAmount(const Tensor* x, Tensor* out, float amount) : x_(x), out_(out), amount_(amount) {}
  const Tensor* x_;
  Tensor* out_;
  float amount_;
};

class Constant : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    MR_ASSIGN(Tensor * out, context.Output("Out"));
    return std::unique_ptr<OpKernel>(new Constant(out));
  }
  Status Run(const RunContext&) override {
    *out_->Resize<float>({1}) = 5;
    return Status::Ok();
  }

 private:
  explicit Constant(Tensor* out) : out_(out) {}
  Tensor* out_;
};

OpRegistry TwoOps() {
  OpRegistry registry;
  registry.Add("add_amount")
      .Doc("Out = X + amount.")
      .Input("X", "floats")
      .Output("Out", "same shape")
      .Attr("amount", 1.0f, "what is added")
      .InferShape(SameAsX)
      .Kernel<AddAmount>();
  registry.Add("constant")
      .Doc("Out = 5.")
      .Output("Out", "[1]")
      .InferShape([](InferShapeContext& context) {
        VarMeta meta;
        meta.dims = {1};
        context.SetOutput("Out", meta);
        return Status::Ok();
      })
      .Kernel<Constant>();
  return registry;
}

ProgramDesc Parse(const std::string& text) {
  ProgramDesc program;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &program));
  return program;
}

constexpr char kProgram[] = R"(blocks { idx: 0
  vars { name: "x" type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: -1 dims: 2 } } } }
  vars { name: "w" persistable: true type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: 1 } } } }
  vars { name: "y" type { type: LOD_TENSOR } }
  ops { type: "add_amount" inputs { parameter: "X" arguments: "x" } outputs { parameter: "Out" arguments: "y" }
        attrs { name: "amount" type: FLOAT f: 2 } }
  ops { type: "add_amount" inputs { parameter: "X" arguments: "y" } outputs { parameter: "Out" arguments: "z" } }
  ops { type: "add_amount" inputs { parameter: "X" arguments: "w" } outputs { parameter: "Out" arguments: "v" } } })";

SlotSchema DenseX() {
  DataFeedDesc desc;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      R"(multi_slot_desc { slots { name: "x" type: "float" is_dense: true is_used: true shape: [-1, 2] } })", &desc));
  return *SlotSchema::Create(desc);
}

Status MakeParameter(const OpRegistry& registry, Scope& root) {
  return RunStartup(Parse(R"(blocks { idx: 0
    vars { name: "w" persistable: true type { type: LOD_TENSOR } }
    ops { type: "constant" outputs { parameter: "Out" arguments: "w" } } })"),
                    registry, root, 1);
}

TEST(Executable, RunsOnABatchWithParametersOfTheRoot) {
  const OpRegistry registry = TwoOps();
  CompileOptions options;
  options.fetches = {"z", "v"};
  auto executable = Executable::Compile(Parse(kProgram), registry, options);
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  EXPECT_EQ((*executable)->vars().at("z").dims, (Dims{-1, 2}));
  const SlotSchema schema = DenseX();
  Scope root;
  ASSERT_TRUE(MakeParameter(registry, root).ok());
  auto frame = Frame::Create(**executable, &schema, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().message();

  SlotBatch batch(schema);
  for (int rows = 3; rows >= 1; --rows) {
    batch.Clear();
    batch.column(0).floats.assign(static_cast<size_t>(2 * rows), 10.f);
    batch.set_rows(rows);
    RunContext context;
    context.batch = &batch;
    context.rows = rows;
    ASSERT_TRUE((*frame)->Run(context).ok());
    const Tensor& z = (*frame)->Find("z")->Get<Tensor>();
    EXPECT_EQ(z.dims(), (Dims{rows, 2}));
    EXPECT_EQ(z.data<float>()[2 * rows - 1], 13.f);
    EXPECT_EQ((*frame)->Find("v")->Get<Tensor>().data<float>()[0], 6.f);
  }
}

TEST(Executable, IsForTheDeviceOnWhichItsVariablesLie) {
  const FarDevice far;
  const OpRegistry registry = TwoOps();
  Scope root(far);
  const auto executable = Executable::Compile(Parse(kProgram), registry, {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  EXPECT_EQ(Frame::Create(**executable, nullptr, root, {}).status().message(),
            "the program was compiled for device \"cpu\", and its variables lie on \"far\"");
  CompileOptions options;
  options.device = &far;
  const std::string refusal =
      " add_amount: there is no kernel for device \"far\"; there are kernels for device \"cpu\"";
  EXPECT_EQ(Executable::Compile(Parse(kProgram), registry, options).status().message(),
            "block 0 op[0]" + refusal + "\nblock 0 op[1]" + refusal + "\nblock 0 op[2]" + refusal);
}

TEST(Executable, AFailureNamesOperatorAndOutput) {
  const OpRegistry registry = TwoOps();
  auto executable = Executable::Compile(Parse(kProgram), registry, {});
  ASSERT_TRUE(executable.ok());
  const SlotSchema schema = DenseX();
  Scope root;
  ASSERT_TRUE(MakeParameter(registry, root).ok());
  auto frame = Frame::Create(**executable, &schema, root, {});
  SlotBatch batch(schema);
  batch.column(0).floats = {1, -7};
  batch.set_rows(1);
  RunContext context;
  context.batch = &batch;
  const Status status = (*frame)->Run(context);
  EXPECT_EQ(status.code(), StatusCode::kBadData);
  EXPECT_THAT(status.message(), HasSubstr("op[0] add_amount (Out: \"y\"): a negative value: -7"));
}

TEST(Executable, ReportsEveryMistakeAtOnce) {
  const OpRegistry registry = TwoOps();
  auto executable = Executable::Compile(Parse(R"(blocks { idx: 0
    vars { name: "input" type { type: LOD_TENSOR } }
    ops { type: "add_amout" inputs { parameter: "X" arguments: "input" } outputs { parameter: "Out" arguments: "a" } }
    ops { type: "add_amount" inputs { parameter: "X" arguments: "imput" } outputs { parameter: "Out" arguments: "b" } }
    ops { type: "add_amount" inputs { parameter: "Y" arguments: "input" } outputs { parameter: "Out" arguments: "c" } }
    })"),
                                        registry, {});
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.status().message(),
            "block 0 op[0] add_amout: no such operator; the nearest that is supported is \"add_amount\"\n"
            "block 0 op[1] add_amount: input X: there is no variable \"imput\"; did you mean \"input\"?\n"
            "block 0 op[2] add_amount: input X is not bound\n"
            "block 0 op[2] add_amount: there is no input \"Y\"");
}

/// A program of a hundred layers that are not here says so once, not a hundred times.
TEST(Executable, TellsUnknownOperatorsByNameAndCount) {
  const OpRegistry registry = TwoOps();
  auto executable = Executable::Compile(Parse(R"(blocks { idx: 0
    ops { type: "constant" outputs { parameter: "Out" arguments: "x" } }
    ops { type: "nce" inputs { parameter: "Input" arguments: "x" } outputs { parameter: "Cost" arguments: "a" } }
    ops { type: "gru" inputs { parameter: "Input" arguments: "x" } outputs { parameter: "Hidden" arguments: "b" } }
    ops { type: "nce" inputs { parameter: "Input" arguments: "x" } outputs { parameter: "Cost" arguments: "c" } }
    ops { type: "nce" inputs { parameter: "Input" arguments: "x" } outputs { parameter: "Cost" arguments: "d" } }
    })"),
                                        registry, {});
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.status().message(),
            "block 0 op[1] nce: no such operator; the program has 3 of them\n"
            "block 0 op[2] gru: no such operator\n"
            "trainer --list_ops shows the operators that there are, docs/operators.md what Paddle has beyond");
}

/// A hint is for a slip of the fingers: nce is no sequence_concat, and conv3d no conv2d.
TEST(OpRegistry, NearestIsWhatWasMeant) {
  OpRegistry registry;
  for (const char* type : {"sequence_concat", "conv2d", "relu", "relu6", "elementwise_add", "clip", "sgd"}) {
    registry.Add(type);
  }
  EXPECT_EQ(registry.Nearest("rleu"), "relu");
  EXPECT_EQ(registry.Nearest("Relu"), "relu");
  EXPECT_EQ(registry.Nearest("elementwse_add"), "elementwise_add");
  for (const char* other : {"nce", "conv3d", "soft_clip", "dpsgd", "gru", "relu7", ""}) {
    EXPECT_EQ(registry.Nearest(other), "") << other;
  }
}

/// What names have in common, "sequence_" or "_grad", makes no other word of them a slip of the fingers.
TEST(OpRegistry, WordsInCommonMakeNoOtherOperatorNear) {
  OpRegistry registry;
  for (const char* type : {"sequence_mask", "sequence_pool", "tile", "tile_grad", "while", "relu_grad"}) {
    registry.Add(type);
  }
  registry.set_plugin_advice("--plugin=FILE loads a plugin");
  EXPECT_EQ(registry.Hint("sequence_erase"), "; --plugin=FILE loads a plugin");
  EXPECT_EQ(registry.Hint("mile_grad"), "; did you mean \"tile_grad\"?");
  EXPECT_EQ(registry.Hint("while_grad"), "; \"while\" is here, without a gradient of this name");
  EXPECT_EQ(registry.Nearest("while_grad"), "");
  EXPECT_EQ(registry.Nearest("sequence_pol"), "sequence_pool");
  EXPECT_EQ(registry.Nearest("sequnce_pool"), "sequence_pool");
  EXPECT_EQ(registry.Nearest("relu_gard"), "relu_grad");
  EXPECT_EQ(registry.Nearest("sequencepool"), "sequence_pool");
}

TEST(Executable, ForwardOnlyKeepsWhatFetchesNeed) {
  const OpRegistry registry = TwoOps();
  CompileOptions options;
  options.forward_only = true;
  options.fetches = {"y"};
  auto executable = Executable::Compile(Parse(kProgram), registry, options);
  ASSERT_TRUE(executable.ok());
  EXPECT_EQ(PrintOps((*executable)->ops()), "len(ops)=1\nop[0]->Type(): add_amount\n");
}

TEST(Executable, RunsTheOperatorsOfASharedProgramWithoutACopyOfThem) {
  const OpRegistry registry = TwoOps();
  auto program = std::make_shared<const ProgramDesc>(Parse(kProgram));
  const OpDesc* const first = &program->blocks(0).ops(0);
  auto executable = Executable::Compile(program, registry, CompileOptions());
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  EXPECT_EQ(&(*executable)->ops()[0], first);
  program.reset();
  EXPECT_EQ((*executable)->ops()[0].type(), "add_amount") << "kept by who runs it";
}

TEST(Executable, AnOutputOfTooManyAxesIsAMistakeOfTheProgram) {
  OpRegistry registry = TwoOps();
  registry.Add("append_axis")
      .Doc("Out has one axis more than X.")
      .Input("X", "any shape")
      .Output("Out", "one axis more")
      .InferShape([](InferShapeContext& context) {
        MR_ASSIGN(VarMeta x, context.Input("X"));
        x.dims.push_back(1);
        context.SetOutput("Out", x);
        return Status::Ok();
      })
      .Kernel<AddAmount>();
  std::string dims;
  for (int axis = 0; axis < Dims::kMaxRank; ++axis) dims += " dims: 2";
  const auto executable = Executable::Compile(
      Parse("blocks { idx: 0 vars { name: 'x' type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32" + dims +
            " } } } } ops { type: 'append_axis' inputs { parameter: 'X' arguments: 'x' } "
            "outputs { parameter: 'Out' arguments: 'y' } } }"),
      registry, {});
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.status().message(),
            "block 0 op[0] append_axis (Out: \"y\"): output Out: variable \"y\" would have the sizes "
            "[2, 2, 2, 2, 2, 2, 2, 2, ...]; at most 8 axes are supported");
}

class Huge : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    MR_ASSIGN(Tensor * out, context.Output("Out"));
    return std::unique_ptr<OpKernel>(new Huge(out));
  }
  Status Run(const RunContext&) override {
    out_->Resize<float>({int64_t{1} << 40, int64_t{1} << 40});
    return Status::Ok();
  }

 private:
  explicit Huge(Tensor* out) : out_(out) {}
  Tensor* out_;
};

TEST(Frame, MemoryThatRunsOutIsTheOperatorsFailureNotACrash) {
  OpRegistry registry;
  registry.Add("huge")
      .Doc("No machine holds it.")
      .Output("Out", "huge")
      .InferShape(+[](InferShapeContext&) { return Status::Ok(); })
      .Kernel<Huge>();
  const auto executable = Executable::Compile(
      Parse("blocks { idx: 0 ops { type: 'huge' outputs { parameter: 'Out' arguments: 'y' } } }"), registry, {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  const Status status = (*frame)->Run(RunContext{});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "op[0] huge (Out: \"y\"): no memory for a tensor of float32 [1099511627776, 1099511627776]");
}

TEST(Frame, WhatNobodyWritesAndSlotsOfOtherSizesAreRefused) {
  const OpRegistry registry = TwoOps();
  std::string text = kProgram;
  text.replace(text.find("arguments: \"y\" } outputs"), 14, "arguments: \"u\"");
  text.replace(text.find("name: \"y\""), 9, "name: \"u\"");
  const auto unwritten = Executable::Compile(Parse(text), registry, {});
  ASSERT_TRUE(unwritten.ok()) << unwritten.status().message();
  const SlotSchema schema = DenseX();
  Scope root;
  ASSERT_TRUE(MakeParameter(registry, root).ok());
  EXPECT_EQ(Frame::Create(**unwritten, &schema, root, {}).status().message(),
            "block 0 op[1] add_amount: input X: no operator before it writes variable \"u\", and no slot in use has "
            "that name");
  text = kProgram;
  text.replace(text.find("dims: -1 dims: 2"), 16, "dims: -1 dims: 3");
  const auto wide = Executable::Compile(Parse(text), registry, {});
  ASSERT_TRUE(wide.ok()) << wide.status().message();
  EXPECT_EQ(Frame::Create(**wide, &schema, root, {}).status().message(),
            "block 0 op[0] add_amount: input X: variable \"x\" is float32 [-1, 3] in the program, but slot \"x\" of "
            "data_desc feeds float32 [-1, 2]");
}

TEST(Frame, AMissingParameterIsNamed) {
  const OpRegistry registry = TwoOps();
  auto executable = Executable::Compile(Parse(kProgram), registry, {});
  Scope root;
  auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_FALSE(frame.ok());
  EXPECT_THAT(frame.status().message(), HasSubstr("did not make: \"w\""));
}

TEST(Frame, AParameterOfAnotherShapeIsRefused) {
  const OpRegistry registry = TwoOps();
  auto executable = Executable::Compile(Parse(kProgram), registry, {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  root.Var("w")->GetMutable<Tensor>()->Resize<float>({2});
  const SlotSchema schema = DenseX();
  const auto frame = Frame::Create(**executable, &schema, root, {});
  ASSERT_FALSE(frame.ok());
  EXPECT_EQ(frame.status().message(), "parameter \"w\" float32 [1] was made as \"w\" float32 [2]");
}

TEST(Executable, AnAttributeOfAnotherTypeIsRefused) {
  std::string text = kProgram;
  text.replace(text.find("type: FLOAT f: 2"), 16, "type: STRING s: \"2\"");
  const auto executable = Executable::Compile(Parse(text), TwoOps(), {});
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.status().message(), "block 0 op[0] add_amount: attribute \"amount\" must not be of type STRING");
}

TEST(OpRegistry, SealReportsEveryOmission) {
  OpRegistry registry = TwoOps();
  registry.Add("constant");
  registry.Add("empty");
  EXPECT_EQ(registry.Seal().message(),
            "operator \"constant\" is registered twice\noperator \"empty\" has no doc\n"
            "operator \"empty\" has no shape inference\noperator \"empty\" has no kernel");
}

// A plugin's author asks for what Grad({...}) never described; it ended the program once.
TEST(OpRegistry, SealReportsGradientsOfNothing) {
  OpRegistry registry = TwoOps();
  registry.AddGradient("relu");
  registry.Add("gone").Doc("Has an argument too few.").Input("X", "").Output("Out", "").Grad({.inputs = {"Y"}});
  registry.AddGradient("gone");
  const std::string message = registry.Seal().message();
  const std::string why = " has no shape inference; AddGradient has it from the Grad({...}) of an operator";
  EXPECT_THAT(message, testing::HasSubstr("operator \"relu_grad\"" + why));
  EXPECT_THAT(message, testing::HasSubstr("operator \"gone_grad\"" + why));
}

TEST(SlotSchema, WritesRangesOutAndNumbersUsedSlots) {
  DataFeedDesc desc;
  CHECK(google::protobuf::TextFormat::ParseFromString(R"(multi_slot_desc {
    slots { name: "skip" type: "uint64" }
    slots { name: "C9..C11" type: "uint64" is_used: true }
    slots { name: "d" type: "float" is_used: true is_dense: true shape: [-1, 2, 3] } })",
                                                      &desc));
  auto schema = SlotSchema::Create(desc);
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(schema->all().size(), 5u);
  EXPECT_EQ(schema->Find("C10"), 1);
  EXPECT_EQ(schema->Find("skip"), -1);
  EXPECT_EQ(schema->used()[3].width, 6);
}

TEST(SlotSchema, TheBatchIsTheFirstAxis) {
  for (const auto& [shape, message] :
       {std::pair("[2, -1]", "slot \"x\": the -1 of the batch stands first in a shape"),
        std::pair("[-1, 1, 1, 1, 1, 1, 1, 1]", "slot \"x\": shape has 8 sizes; at most 7 are supported")}) {
    DataFeedDesc desc;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "multi_slot_desc { slots { name: 'x' type: 'float' is_dense: true is_used: true shape: " + std::string(shape) +
            " } }",
        &desc));
    const auto schema = SlotSchema::Create(desc);
    ASSERT_FALSE(schema.ok());
    EXPECT_EQ(schema.status().message(), message);
  }
}

TEST(SlotSchema, ReportsEveryMistakeAtOnce) {
  DataFeedDesc desc;
  CHECK(google::protobuf::TextFormat::ParseFromString(R"(multi_slot_desc {
    slots { name: "a" type: "int32" is_used: true }
    slots { name: "a" type: "uint64" is_used: true }
    slots { name: "C3..C1" type: "uint64" is_used: true }
    slots { name: "d" type: "float" is_dense: true shape: [-1, -1] }
    slots { name: "e" type: "float" is_dense: true shape: [4] }
    slots { name: "f" type: "float" is_dense: true } })",
                                                      &desc));
  EXPECT_EQ(SlotSchema::Create(desc).status().message(),
            "slot \"a\": type is \"uint64\" or \"float\", not \"int32\"\n"
            "slot \"a\" stands twice in multi_slot_desc\n"
            "slot range \"C3..C1\": runs from 3 to 1; it must rise and hold at most 65536 slots\n"
            "slot \"d\": the shape of a dense slot has exactly one -1, for the batch; it has 2\n"
            "slot \"e\": the shape of a dense slot has exactly one -1, for the batch; it has 0\n"
            "slot \"f\": a dense slot needs a shape, for example shape: [-1, 1]");
}

TEST(Executable, AStopEndsTheCompilingAndTheStartupProgram) {
  const OpRegistry registry = TwoOps();
  std::stop_source stop;
  CompileOptions options;
  options.stop = stop.get_token();
  ASSERT_TRUE(Executable::Compile(Parse(kProgram), registry, options).ok());
  stop.request_stop();
  EXPECT_EQ(Executable::Compile(Parse(kProgram), registry, options).status().code(), StatusCode::kCancelled);
  Scope root;
  EXPECT_EQ(RunStartup(Parse("blocks { idx: 0 }"), registry, root, 1, nullptr, nullptr, stop.get_token()).code(),
            StatusCode::kCancelled);
}

}  // namespace
}  // namespace millrace
