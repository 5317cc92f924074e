#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/registry.h"
#include "runtime/frame.h"

namespace millrace {
namespace {

using testing::HasSubstr;

ProgramDesc ParsedText(const std::string& text) {
  ProgramDesc program;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &program));
  return program;
}

std::string TensorText(const std::string& name, const std::string& type, const std::string& dims,
                       bool persistable = false) {
  return "vars { name: \"" + name + "\" persistable: " + (persistable ? "true" : "false") +
         " type { type: LOD_TENSOR lod_tensor { tensor { data_type: " + type + " " + dims + " } } } }\n";
}

/// x and y [-1, 2], a condition, and `ops` in block 0.
std::string WithOps(const std::string& ops) {
  return "blocks { idx: 0 parent_idx: -1\n" + TensorText("x", "FP32", "dims: -1 dims: 2") +
         TensorText("y", "FP32", "dims: -1 dims: 2") + TensorText("z", "FP32", "dims: -1 dims: 4") +
         TensorText("c", "BOOL", "dims: 1") + ops + "}\n";
}

Status StatusOfText(const std::string& text) { return Executable::Compile(ParsedText(text), AllOps(), {}).status(); }

TEST(MalformedProgram, AListForOneVariableIsRefused) {
  const Status status = StatusOfText(WithOps(R"(
    ops { type: "elementwise_add" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Y" arguments: "y" }
          outputs { parameter: "Out" arguments: "z" arguments: "z2" } })"));
  EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
  EXPECT_EQ(status.message(),
            "block 0 op[0] elementwise_add: output Out takes one variable, and 2 are bound to it: \"z\", \"z2\"");
  EXPECT_THAT(StatusOfText(WithOps(R"(
    ops { type: "layer_norm" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Scale" arguments: ["y", "z"] }
          outputs { parameter: "Y" arguments: "a" } outputs { parameter: "Mean" arguments: "b" }
          outputs { parameter: "Variance" arguments: "d" } })"))
                  .message(),
              HasSubstr("input Scale takes one variable, and 2 are bound to it: \"y\", \"z\""));
}

TEST(MalformedProgram, OneVariableForTwoOutputsIsRefused) {
  EXPECT_THAT(StatusOfText(WithOps(R"(
    ops { type: "dropout" inputs { parameter: "X" arguments: "x" }
          outputs { parameter: "Out" arguments: "a" } outputs { parameter: "Mask" arguments: "a" } })"))
                  .message(),
              HasSubstr("dropout: output Mask: variable \"a\" is an output of the operator already"));
}

TEST(MalformedProgram, AnOutputThatIsReadOnIsRefused) {
  EXPECT_THAT(StatusOfText(WithOps(R"(
    ops { type: "concat" inputs { parameter: "X" arguments: ["x", "y"] } outputs { parameter: "Out" arguments: "x" } })"))
                  .message(),
              HasSubstr("concat: output Out: variable \"x\" is an input of the operator as well"));
  const Status in_place = StatusOfText(WithOps(R"(
    ops { type: "scale" inputs { parameter: "X" arguments: "x" } outputs { parameter: "Out" arguments: "x" } })"));
  EXPECT_TRUE(in_place.ok()) << in_place.message();
}

TEST(MalformedProgram, ParametersAndAttributesThatComeTwiceAreRefused) {
  EXPECT_THAT(StatusOfText(WithOps(R"(
    ops { type: "scale" inputs { parameter: "X" } inputs { parameter: "X" arguments: "x" }
          outputs { parameter: "Out" arguments: "a" } attrs { name: "scale" type: FLOAT f: 1 }
          attrs { name: "scale" type: FLOAT f: 2 } })"))
                  .message(),
              testing::AllOf(HasSubstr("input X is bound twice"), HasSubstr("attribute \"scale\" is given twice")));
}

/// As Paddle writes reshape2 and the concat of a split's gradient.
TEST(MalformedProgram, AnAttributeThatSaysTheSameTwiceIsSound) {
  const Status status = StatusOfText(WithOps(R"(
    ops { type: "scale" inputs { parameter: "X" arguments: "x" } outputs { parameter: "Out" arguments: "a" }
          attrs { name: "scale" type: FLOAT f: 2 } attrs { name: "scale" type: FLOAT f: 2 }
          attrs { name: "use_mkldnn" type: BOOLEAN b: false } attrs { name: "use_mkldnn" type: BOOLEAN b: true } })"));
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(MalformedProgram, GradientsOfAListAreNamedAndCounted) {
  const std::string concat = R"(
    ops { type: "concat_grad" inputs { parameter: "X" arguments: ["x", "y"] }
          inputs { parameter: "Out@GRAD" arguments: "z" } attrs { name: "axis" type: INT i: 1 } outputs { )";
  EXPECT_THAT(StatusOfText(WithOps(concat + "parameter: \"Xs@GRAD\" arguments: [\"a\", \"b\"] } }")).message(),
              HasSubstr("concat_grad: there is no output \"Xs@GRAD\"; did you mean \"X@GRAD\"?"));
  EXPECT_THAT(StatusOfText(WithOps(concat + "parameter: \"X@GRAD\" arguments: \"a\" } }")).message(),
              HasSubstr("1 variables are bound to X@GRAD and 2 to X, whose gradients they are"));
  const Status whole = StatusOfText(WithOps(concat + "parameter: \"X@GRAD\" arguments: [\"a\", \"@EMPTY@\"] } }"));
  EXPECT_TRUE(whole.ok()) << whole.message();
}

TEST(MalformedProgram, SizesThatNoMachineHoldsAreRefused) {
  const std::string declared = "blocks { idx: 0 parent_idx: -1\n" +
                               TensorText("w", "FP32", "dims: 9223372036854775807 dims: 3") +
                               TensorText("v", "FP32", "dims: -9223372036854775807 dims: 3") + "}\n";
  EXPECT_THAT(StatusOfText(declared).message(),
              testing::AllOf(HasSubstr("variable \"w\" has the sizes [9223372036854775807, 3], of which no machine"),
                             HasSubstr("variable \"v\" has the sizes [-9223372036854775807, 3], of which no machine")));
  EXPECT_THAT(StatusOfText(WithOps(TensorText("v", "FP32", "dims: 1099511627776 dims: 2") +
                                   TensorText("w", "FP32", "dims: 2 dims: 1099511627776") + R"(
    ops { type: "matmul_v2" inputs { parameter: "X" arguments: "v" } inputs { parameter: "Y" arguments: "w" }
          outputs { parameter: "Out" arguments: "a" } })"))
                  .message(),
              HasSubstr("output Out: variable \"a\" would have the sizes [1099511627776, 1099511627776], of which no"));
}

TEST(MalformedProgram, AnAxisFarOutsideIsRefused) {
  EXPECT_THAT(StatusOfText(WithOps(R"(
    ops { type: "elementwise_add" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Y" arguments: "y" }
          outputs { parameter: "Out" arguments: "a" } attrs { name: "axis" type: LONG l: 9223372036854775807 } })"))
                  .message(),
              HasSubstr("elementwise_add (Out: \"a\"): "));
}

// A kernel that made room for the output took away the input that it still read.
TEST(MalformedProgram, AnInputThatTheOutputWouldResizeIsRefused) {
  const auto compare = [](const std::string& out) {
    return StatusOfText(WithOps(R"(
    ops { type: "equal" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Y" arguments: "y" }
          outputs { parameter: "Out" arguments: ")" +
                                out + "\" } }"));
  };
  EXPECT_THAT(compare("y").message(),
              HasSubstr("equal: variable \"y\" is an input and an output, and would become \"y\" bool [-1, 2] where it "
                        "is \"y\" float32 [-1, 2]; give the output a variable of its own"));
  EXPECT_TRUE(compare("a").ok());
  EXPECT_THAT(StatusOfText(WithOps(TensorText("label", "INT64", "dims: -1") + TensorText("w", "FP32", "dims: 2") + R"(
    ops { type: "nll_loss" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Label" arguments: "label" }
          inputs { parameter: "Weight" arguments: "w" } outputs { parameter: "Out" arguments: "w" }
          outputs { parameter: "Total_weight" arguments: "total" } attrs { name: "reduction" type: STRING s: "none" } })"))
                  .message(),
              HasSubstr("nll_loss: output Out: variable \"w\" is an input of the operator as well"));
}

/// The attribute is the forward operator's, which checks it; a program may have the gradient without it.
TEST(MalformedProgram, AGradientsAxisInFrontOfAllIsRefused) {
  const std::string text = "blocks { idx: 0 parent_idx: -1\n" + TensorText("x", "FP32", "dims: -1 dims: 2") +
                           TensorText("w", "FP32", "dims: 2 dims: 2") + TensorText("g", "FP32", "dims: -1 dims: 2") +
                           R"(
    ops { type: "fused_fc_grad" inputs { parameter: "X" arguments: "x" } inputs { parameter: "W" arguments: "w" }
          inputs { parameter: "Out" arguments: "g" } inputs { parameter: "Out@GRAD" arguments: "g" }
          outputs { parameter: "X@GRAD" arguments: "a" } outputs { parameter: "W@GRAD" arguments: "b" }
          attrs { name: "in_num_col_dims" type: INT i: -3 } } })";
  const auto executable = Executable::Compile(ParsedText(text), AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  for (const char* name : {"x", "w", "g"}) {
    std::fill_n((*frame)->scope().Find(name)->GetMutable<Tensor>()->Resize<float>({2, 2}), 4, 1.0F);
  }
  EXPECT_THAT((*frame)->Run(RunContext{}).message(), HasSubstr("the columns of X \"x\" [2, 2] are not the rows of W"));
}

// Its last axis was looked for in front of the sizes.
TEST(MalformedProgram, AParameterWithoutAxesIsRefused) {
  const std::string text = "blocks { idx: 0 parent_idx: -1\n" + TensorText("x", "FP32", "dims: -1 dims: 2") +
                           TensorText("w", "FP32", "") + R"(
    ops { type: "fused_fc_grad" inputs { parameter: "X" arguments: "x" } inputs { parameter: "W" arguments: "w" }
          inputs { parameter: "Out" arguments: "x" } inputs { parameter: "Out@GRAD" arguments: "x" }
          outputs { parameter: "W@GRAD" arguments: "b" } } })";
  EXPECT_THAT(Executable::Compile(ParsedText(text), AllOps(), {}).status().message(),
              HasSubstr("): W [] must have two axes"));
}

// A key that was mixed with the slot's number was a row far outside the matrix.
TEST(MalformedProgram, ASlotsOwnRowsInAMatrixAreRefused) {
  const std::string text = "blocks { idx: 0 parent_idx: -1\n" + TensorText("w", "FP32", "dims: 7 dims: 2", true) +
                           TensorText("ids", "INT64", "dims: -1 dims: 1") + R"(
    ops { type: "lookup_table_v2" inputs { parameter: "W" arguments: "w" } inputs { parameter: "Ids" arguments: "ids" }
          outputs { parameter: "Out" arguments: "a" } attrs { name: "slot_salt" type: INT i: -3 } } })";
  const auto executable = Executable::Compile(ParsedText(text), AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  std::fill_n(root.Var("w")->GetMutable<Tensor>()->Resize<float>({7, 2}), 14, 1.0F);
  EXPECT_THAT(Frame::Create(**executable, nullptr, root, {}).status().message(),
              HasSubstr("\"w\" is a matrix, and only in a table a slot has rows of its own: its salt is -3"));
}

std::string WhileText(const std::string& sub_block) {
  return WithOps("ops { type: \"while\" inputs { parameter: \"Condition\" arguments: \"c\" } " + sub_block + "}") +
         R"(blocks { idx: 1 parent_idx: 0 ops { type: "scale" inputs { parameter: "X" arguments: "x" }
            outputs { parameter: "Out" arguments: "a" } } })";
}

TEST(MalformedProgram, ABlockThatIsNotThereIsRefused) {
  const auto attr = [](const std::string& value) { return "attrs { name: \"sub_block\" type: " + value + " }"; };
  const Status whole = StatusOfText(WhileText(attr("BLOCK block_idx: 1")));
  EXPECT_TRUE(whole.ok()) << whole.message();
  EXPECT_THAT(StatusOfText(WhileText(attr("BLOCK block_idx: -1"))).message(),
              HasSubstr("while: attribute \"sub_block\": there is no block -1"));
  EXPECT_THAT(StatusOfText(WhileText(attr("BLOCK block_idx: 7"))).message(),
              HasSubstr("runs block 7, but the program has 2"));
  EXPECT_THAT(StatusOfText(WhileText(attr("BLOCK block_idx: 0"))).message(),
              HasSubstr("runs block 0, which runs already"));
  EXPECT_THAT(StatusOfText(WhileText(attr("INT i: 1"))).message(), HasSubstr("must be of type BLOCK, not INT"));
  EXPECT_THAT(StatusOfText(WhileText("")).message(), HasSubstr("attribute \"sub_block\" is missing"));
  EXPECT_THAT(StatusOfText(WithOps(R"(
    ops { type: "scale" inputs { parameter: "X" arguments: "x" } outputs { parameter: "Out" arguments: "a" }
          attrs { name: "op_device" type: BLOCK block_idx: 1 } })"))
                  .message(),
              HasSubstr("attribute \"op_device\" names a block, and scale has no such block to run"));
}

/// A block within a block within a block, `depth` of them below block 0.
std::string NestedText(int depth, bool tells_parents) {
  std::string text;
  for (int block = 0; block <= depth; ++block) {
    const std::string op = block == depth
                               ? "ops { type: \"scale\" inputs { parameter: \"X\" arguments: \"x\" } outputs { "
                                 "parameter: \"Out\" arguments: \"a\" } }"
                               : "ops { type: \"while\" inputs { parameter: \"Condition\" arguments: \"c\" } attrs { "
                                 "name: \"sub_block\" type: BLOCK block_idx: " +
                                     std::to_string(block + 1) + " } }";
    const int parent = tells_parents ? block - 1 : 0;
    text += block == 0 ? WithOps(op)
                       : "blocks { idx: " + std::to_string(block) + " parent_idx: " + std::to_string(parent) + " " +
                             op + " }\n";
  }
  return text;
}

TEST(MalformedProgram, BlocksNestedWithoutEndAreRefused) {
  const Status some = StatusOfText(NestedText(100, true));
  EXPECT_TRUE(some.ok()) << some.message();
  for (const bool tells_parents : {false, true}) {
    const Status status = StatusOfText(NestedText(30000, tells_parents));
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(status.message(), HasSubstr("within 100 others; no program needs more"));
  }
}

TEST(MalformedProgram, WhatNothingWroteIsRefusedWhereItIsRead) {
  const std::string text =
      WithOps(TensorText("a", "FP32", "dims: -1 dims: 2") + TensorText("b", "FP32", "dims: -1 dims: 2") + R"(
    ops { type: "conditional_block" inputs { parameter: "Cond" arguments: "c" } outputs { parameter: "Out" arguments: "a" }
          attrs { name: "is_scalar_condition" type: BOOLEAN b: true } attrs { name: "sub_block" type: BLOCK block_idx: 1 } }
    ops { type: "scale" inputs { parameter: "X" arguments: "a" } outputs { parameter: "Out" arguments: "b" } }
    ops { type: "elementwise_add" inputs { parameter: "X" arguments: "b" } inputs { parameter: "Y" arguments: "y" }
          outputs { parameter: "Out" arguments: "d" } })") +
      R"(blocks { idx: 1 parent_idx: 0 ops { type: "scale" inputs { parameter: "X" arguments: "x" }
         outputs { parameter: "Out" arguments: "a" } } })";
  CompileOptions options;
  options.fuse = false;
  const auto executable = Executable::Compile(ParsedText(text), AllOps(), options);
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  const auto tensor = [&](const char* name) { return (*frame)->scope().Find(name)->GetMutable<Tensor>(); };
  bool* const runs = tensor("c")->Resize<bool>({1});
  *runs = false;
  std::fill_n(tensor("x")->Resize<float>({3, 2}), 6, 1.0F);
  const auto run = [&] { return (*frame)->Run(RunContext{}); };
  EXPECT_EQ(run().code(), StatusCode::kInvalidConfig);
  EXPECT_EQ(run().message(),
            "op[1] scale (Out: \"b\"): input X: variable \"a\" has no value: conditional_block, whose output Out it "
            "is, has not written it; it does when its block runs");
  *runs = true;
  EXPECT_EQ(run().message(),
            "op[2] elementwise_add (Out: \"d\"): input Y: variable \"y\" has no value: no operator writes it");
  // No values at all are a value.
  tensor("x")->Resize<float>({0, 2});
  tensor("y")->View(DType::kFloat32, {0, 2}, nullptr);
  EXPECT_TRUE(run().ok()) << run().message();
}

TEST(MalformedProgram, WhatNothingWroteIsNotAwaitedWhereItIsNotRead) {
  const std::string text =
      WithOps(TensorText("a", "FP32", "dims: -1 dims: 2") + TensorText("b", "FP32", "dims: -1 dims: 2") + R"(
    ops { type: "elementwise_add_grad" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Y" arguments: "x" }
          inputs { parameter: "Out" arguments: "a" } inputs { parameter: "Out@GRAD" arguments: "x" }
          outputs { parameter: "X@GRAD" arguments: "b" } })");
  const auto executable = Executable::Compile(ParsedText(text), AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  std::fill_n((*frame)->scope().Find("x")->GetMutable<Tensor>()->Resize<float>({3, 2}), 6, 1.0F);
  const Status run = (*frame)->Run(RunContext{});
  EXPECT_TRUE(run.ok()) << run.message();
}

/// Runs a gradient operator on x [3, 2] of one sequence, nine ids and g, ones of `sizes`.
Status RunGradient(const std::string& op, const Dims& sizes) {
  const std::string g = TensorText("g", "FP32", sizes.rank() == 1 ? "dims: -1" : "dims: -1 dims: 2");
  const std::string text = "blocks { idx: 0 parent_idx: -1\n" + g + TensorText("ids", "INT64", "dims: -1 dims: 1") + R"(
    vars { name: "x" type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: -1 dims: 2 } lod_level: 1 } } }
    ops { inputs { parameter: "Out@GRAD" arguments: "g" } )" +
                           op + " } }";
  const auto executable = Executable::Compile(ParsedText(text), AllOps(), {});
  if (!executable.ok()) return executable.status();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  if (!frame.ok()) return frame.status();
  const auto tensor = [&](const char* name) { return (*frame)->scope().Var(name)->GetMutable<Tensor>(); };
  static constexpr uint32_t kOneSequence[] = {0, 3};
  std::fill_n(tensor("x")->Resize<float>({3, 2}), 6, 1.0F);
  tensor("x")->set_lod(kOneSequence);
  std::fill_n(tensor("ids")->Resize<int64_t>({9, 1}), 9, 0);
  std::fill_n(tensor("g")->Resize<float>(sizes), sizes.numel(), 1.0F);
  return (*frame)->Run(RunContext{});
}

// Gradients took the sizes of what they read on trust, and wrote behind the end of their output.
TEST(MalformedProgram, AGradientOfOtherSizesThanItsForwardOperatorsIsRefusedAsItRuns) {
  const std::string x_to_a =
      R"( inputs { parameter: "X" arguments: "x" } outputs { parameter: "X@GRAD" arguments: "a" })";
  EXPECT_THAT(RunGradient(R"(type: "scatter_grad" inputs { parameter: "Ids" arguments: "ids" }
                             inputs { parameter: "Updates" arguments: "x" }
                             outputs { parameter: "Updates@GRAD" arguments: "a" })",
                          {2, 2})
                  .message(),
              HasSubstr("Updates [3, 2] must have a row of Out@GRAD [2, 2] for each of 9 ids"));
  EXPECT_THAT(RunGradient(R"(type: "tril_triu_grad" outputs { parameter: "X@GRAD" arguments: "a" })", {4}).message(),
              HasSubstr("[4] is no matrix"));
  EXPECT_THAT(RunGradient("type: \"sequence_unpad_grad\"" + x_to_a, {2, 2}).message(),
              HasSubstr("the gradient of Out says the lengths of 0 sequences, and X [3, 2] has 3"));
  EXPECT_THAT(
      RunGradient("type: \"split_grad\" inputs { parameter: \"Out\" arguments: \"g\" }" + x_to_a, {2, 2}).message(),
      HasSubstr("shapes differ: \"x\" [3, 2], \"a\""));
  const std::string y = R"( inputs { parameter: "Y" arguments: "x" })";
  EXPECT_THAT(RunGradient("type: \"sequence_expand_as_grad\"" + x_to_a + y, {2, 2}).message(),
              HasSubstr("X has 3 parts for 1 sequences of Y \"x\""));
  EXPECT_THAT(RunGradient("type: \"sequence_expand_grad\"" + x_to_a + y, {2, 2}).message(),
              HasSubstr("(\"g\") is float32 [2, 2]; the forward operator's sizes ask for 18 values"));
}

/// Runs `ops` on tensors of ones, of these sizes, that the program describes by their axes alone.
class OnOnes {
 public:
  OnOnes(const std::vector<std::pair<std::string, Dims>>& tensors, const std::string& ops) {
    std::string text = "blocks { idx: 0 parent_idx: -1\n";
    for (const auto& [name, dims] : tensors) {
      std::string sizes;
      for (int axis = 0; axis < dims.rank(); ++axis) sizes += "dims: -1 ";
      text += TensorText(name, "FP32", sizes);
    }
    CompileOptions options;
    options.fuse = false;
    auto executable = Executable::Compile(ParsedText(text + ops + "}"), AllOps(), options);
    EXPECT_TRUE(executable.ok()) << executable.status().message();
    executable_ = std::move(*executable);
    auto frame = Frame::Create(*executable_, nullptr, root_, {});
    EXPECT_TRUE(frame.ok()) << frame.status().message();
    frame_ = std::move(*frame);
    for (const auto& [name, dims] : tensors) std::fill_n(tensor(name)->Resize<float>(dims), dims.numel(), 1.0F);
  }
  Tensor* tensor(const std::string& name) { return frame_->scope().Find(name)->GetMutable<Tensor>(); }
  Status Run() { return frame_->Run(RunContext{}); }

 private:
  Scope root_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<Frame> frame_;
};

// The memory that a reshape showed was given back when the variable behind it grew.
TEST(MalformedProgram, AVariableMayGrowWhileAnotherShowsIt) {
  OnOnes run({{"x", {3, 2}}, {"z", {500, 2}}}, TensorText("shown", "FP32", "") + R"(
    ops { type: "reshape" inputs { parameter: "X" arguments: "x" } outputs { parameter: "Out" arguments: "shown" }
          attrs { name: "shape" type: INTS ints: [2, 3] } }
    ops { type: "scale" inputs { parameter: "X" arguments: "z" } outputs { parameter: "Out" arguments: "x" }
          attrs { name: "scale" type: FLOAT f: 7 } }
    ops { type: "scale" inputs { parameter: "X" arguments: "shown" } outputs { parameter: "Out" arguments: "a" } })");
  ASSERT_TRUE(run.Run().ok());
  const float* a = run.tensor("a")->data<float>();
  EXPECT_THAT(std::vector<float>(a, a + 6), testing::Each(1.0F));
  EXPECT_EQ(run.tensor("x")->dims(), (Dims{500, 2}));
}

// What a program says of sizes leaves some to the batch; kernels read as many values as X has columns.
TEST(MalformedProgram, ParametersOfOtherSizesThanTheBatchAsksForAreRefused) {
  OnOnes norm({{"x", {3, 2}}, {"s", {1}}}, R"(
    ops { type: "layer_norm" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Scale" arguments: "s" }
          outputs { parameter: "Y" arguments: "a" } outputs { parameter: "Mean" arguments: "b" }
          outputs { parameter: "Variance" arguments: "d" } })");
  EXPECT_EQ(norm.Run().message(), "op[0] layer_norm (Y: \"a\"): \"s\" [1] must have 2 values");
  OnOnes update({{"p", {4, 2}}, {"g", {4, 2}}, {"v", {1, 2}}, {"r", {1}}},
                TensorText("one", "FP32", "") + TensorText("rate", "FP32", "") + R"(
    ops { type: "fill_any_like" inputs { parameter: "X" arguments: "r" } outputs { parameter: "Out" arguments: "one" } }
    ops { type: "reshape" inputs { parameter: "X" arguments: "one" } outputs { parameter: "Out" arguments: "rate" }
          attrs { name: "shape" type: INTS ints: 1 } }
    ops { type: "momentum" inputs { parameter: "Param" arguments: "p" } inputs { parameter: "Grad" arguments: "g" }
          inputs { parameter: "Velocity" arguments: "v" } inputs { parameter: "LearningRate" arguments: "rate" }
          outputs { parameter: "ParamOut" arguments: "p" } outputs { parameter: "VelocityOut" arguments: "v" }
          attrs { name: "mu" type: FLOAT f: 0.5 } })");
  EXPECT_THAT(update.Run().message(), HasSubstr("a state [1, 2] does not fit parameter \"p\" [4, 2]"));
}

// Y@GRAD took the place of X, and its size, while X was read on.
TEST(MalformedProgram, AGradientInThePlaceOfWhatItReadsOnIsRefused) {
  const std::string v = TensorText("v", "FP32", "dims: 2");
  const auto gradient = [&](const std::string& to) {
    return StatusOfText(WithOps(v + R"(
    ops { type: "elementwise_mul_grad" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Y" arguments: "v" }
          inputs { parameter: "Out@GRAD" arguments: "y" } outputs { parameter: "Y@GRAD" arguments: ")" +
                                to + "\" } }"));
  };
  EXPECT_TRUE(gradient("a").ok()) << gradient("a").message();
  EXPECT_THAT(gradient("x").message(), HasSubstr("elementwise_mul_grad: variable \"x\" is an input and an output, and "
                                                 "would become \"x\" float32 [2] where it is \"x\" float32 [-1, 2]"));
}

TEST(MalformedProgram, AGradientThatReadsNoVariableIsRefused) {
  EXPECT_THAT(StatusOfText(WithOps(R"(
    ops { type: "split_grad" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Out" arguments: "@EMPTY@" }
          inputs { parameter: "Out@GRAD" arguments: "y" } outputs { parameter: "X@GRAD" arguments: "a" } })"))
                  .message(),
              HasSubstr("split_grad: input Out is read, and \"@EMPTY@\" stands for no variable"));
}

// The gradient's own schema does not have the attribute; the forward operator's has it as a number.
TEST(MalformedProgram, AnAttributeThatAGradientCarriesHasTheTypeOfItsForwardOperators) {
  EXPECT_THAT(StatusOfText(WithOps(R"(
    ops { type: "flatten_grad" inputs { parameter: "X" arguments: "x" } inputs { parameter: "Out@GRAD" arguments: "y" }
          outputs { parameter: "X@GRAD" arguments: "a" } attrs { name: "axis" type: INTS ints: 1 } })"))
                  .message(),
              HasSubstr("flatten_grad: attribute \"axis\" must not be of type INTS"));
}

// What arrives is of the rows of Out, which are fewer; it was freed to make room for X@GRAD, and read on.
TEST(MalformedProgram, AGradientOfAnOperatorThatReadsOnReadsOnToo) {
  EXPECT_THAT(StatusOfText(WithOps(R"(
    vars { name: "s" type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: -1 dims: 2 } lod_level: 1 } } }
    ops { type: "sequence_pool_grad" inputs { parameter: "X" arguments: "s" }
          inputs { parameter: "Out@GRAD" arguments: "x" } outputs { parameter: "X@GRAD" arguments: "x" } })"))
                  .message(),
              HasSubstr("output X@GRAD: variable \"x\" is an input of the operator as well"));
}

// An operator whose outputs hold a list was not looked at when its gradient was checked.
TEST(MalformedProgram, AGradientOfAListIsCheckedAsItsForwardOperator) {
  EXPECT_THAT(StatusOfText(WithOps(TensorText("i", "FP32", "dims: -1 dims: -1 dims: 2") + R"(
    ops { type: "rnn_grad" inputs { parameter: "Input" arguments: "i" } inputs { parameter: "PreState" arguments: "i" }
          inputs { parameter: "WeightList" arguments: ["x", "x"] } inputs { parameter: "Reserve" arguments: "x" }
          inputs { parameter: "State@GRAD" arguments: "i" } outputs { parameter: "Input@GRAD" arguments: "a" }
          attrs { name: "num_layers" type: INT i: 0 } })"))
                  .message(),
              HasSubstr("num_layers and hidden_size must be from 1 to"));
}

// The values were written anew, and the sequences of those before stayed.
TEST(MalformedProgram, SequencesOfOtherRowsAreRefused) {
  static constexpr uint32_t kOneSequence[] = {0, 3};
  const std::string text = "blocks { idx: 0 parent_idx: -1\n" + std::string(R"(
    vars { name: "x" type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: -1 dims: 2 } lod_level: 1 } } }
    ops { type: "sequence_pool" inputs { parameter: "X" arguments: "x" } outputs { parameter: "Out" arguments: "a" }
          attrs { name: "pooltype" type: STRING s: "SUM" } } })");
  const auto executable = Executable::Compile(ParsedText(text), AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  Tensor* const x = (*frame)->scope().Find("x")->GetMutable<Tensor>();
  std::fill_n(x->Resize<float>({2, 2}), 4, 1.0F);
  x->set_lod(kOneSequence);
  EXPECT_THAT((*frame)->Run(RunContext{}).message(), HasSubstr("\"x\" [2, 2] has sequences of 3 rows together"));
}

TEST(MalformedProgram, AParameterThatTheStartupDeclaresAndNeverWritesIsNamed) {
  Scope root;
  const ProgramDesc startup = ParsedText("blocks { idx: 0 parent_idx: -1\n" + TensorText("w", "FP32", "dims: 2", true) +
                                         TensorText("moment", "FP32", "dims: 2", true) + R"(
    ops { type: "fill_constant" outputs { parameter: "Out" arguments: "w" } attrs { name: "shape" type: INTS ints: 2 } } })");
  ASSERT_TRUE(RunStartup(startup, AllOps(), root, 1).ok());
  const ProgramDesc main = ParsedText("blocks { idx: 0 parent_idx: -1\n" + TensorText("w", "FP32", "dims: 2", true) +
                                      TensorText("moment", "FP32", "dims: 2", true) + R"(
    ops { type: "elementwise_add" inputs { parameter: "X" arguments: "w" } inputs { parameter: "Y" arguments: "moment" }
          outputs { parameter: "Out" arguments: "sum" } } })");
  const auto executable = Executable::Compile(main, AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  EXPECT_EQ(frame.status().code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(frame.status().message(), HasSubstr("parameters that are read and have no value: \"moment\""));
}

}  // namespace
}  // namespace millrace
