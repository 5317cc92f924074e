#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "ops/registry.h"
#include "runtime/frame.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

ProgramDesc Parse(const std::string& text) {
  ProgramDesc program;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &program)) << text;
  return program;
}

std::string Var(const std::string& name, const std::string& type) {
  return "vars { name: \"" + name + "\" type { type: LOD_TENSOR lod_tensor { tensor { data_type: " + type +
         " dims: 1 } } } }\n";
}

std::string Constant(const std::string& name, const std::string& type, double value) {
  const std::string number = type == "INT64" ? "3" : "5";
  return "ops { type: \"fill_constant\" outputs { parameter: \"Out\" arguments: \"" + name +
         "\" } attrs { name: \"shape\" type: LONGS longs: 1 } attrs { name: \"dtype\" type: INT i: " + number +
         " } attrs { name: \"value\" type: FLOAT f: " + std::to_string(value) + " } }\n";
}

std::string LessThan(const std::string& x, const std::string& y, const std::string& out) {
  return "ops { type: \"less_than\" inputs { parameter: \"X\" arguments: \"" + x +
         "\" } inputs { parameter: \"Y\" arguments: \"" + y + "\" } outputs { parameter: \"Out\" arguments: \"" + out +
         "\" } }\n";
}

std::string Increment(const std::string& name) {
  return "ops { type: \"increment\" inputs { parameter: \"X\" arguments: \"" + name +
         "\" } outputs { parameter: \"Out\" arguments: \"" + name +
         "\" } attrs { name: \"step\" type: FLOAT f: 1 } }\n";
}

std::string Add(const std::string& x, const std::string& y) {
  return "ops { type: \"elementwise_add\" inputs { parameter: \"X\" arguments: \"" + x +
         "\" } inputs { parameter: \"Y\" arguments: \"" + y + "\" } outputs { parameter: \"Out\" arguments: \"" + x +
         "\" } }\n";
}

std::string RunsBlock(const std::string& type, const std::string& input, const std::string& condition, int block) {
  return "ops { type: \"" + type + "\" inputs { parameter: \"" + input + "\" arguments: \"" + condition +
         "\" } attrs { name: \"sub_block\" type: BLOCK block_idx: " + std::to_string(block) + " } attrs { name: \"is_" +
         (type == "while" ? "test" : "scalar_condition") +
         "\" type: BOOLEAN b: " + (type == "while" ? "false" : "true") + " } }\n";
}

/// i = 0; total = 0; while (i < 5) { ++i; if (i < 3) total += i as float 1; }: total counts the rounds below 3.
ProgramDesc CountingProgram(double rounds) {
  return Parse("blocks { idx: 0 parent_idx: -1\n" + Var("i", "INT64") + Var("n", "INT64") + Var("three", "INT64") +
               Var("go", "BOOL") + Var("low", "BOOL") + Var("total", "FP32") + Var("one", "FP32") +
               Constant("i", "INT64", 0) + Constant("n", "INT64", rounds) + Constant("three", "INT64", 3) +
               Constant("total", "FP32", 0) + Constant("one", "FP32", 1) + LessThan("i", "n", "go") +
               RunsBlock("while", "Condition", "go", 1) + "}\nblocks { idx: 1 parent_idx: 0\n" + Increment("i") +
               LessThan("i", "three", "low") + RunsBlock("conditional_block", "Cond", "low", 2) +
               LessThan("i", "n", "go") + "}\nblocks { idx: 2 parent_idx: 1\n" + Add("total", "one") + "}");
}

std::string CompileError(const ProgramDesc& program) {
  const auto executable = Executable::Compile(program, AllOps(), {});
  return executable.ok() ? "" : executable.status().message();
}

TEST(ControlFlow, WhileRunsItsBlockAsLongAsTheConditionHolds) {
  for (const double rounds : {0.0, 1.0, 5.0}) {
    CompileOptions options;
    options.fetches = {"i", "total"};
    const auto executable = Executable::Compile(CountingProgram(rounds), AllOps(), options);
    ASSERT_TRUE(executable.ok()) << executable.status().message();
    Scope root;
    const auto frame = Frame::Create(**executable, nullptr, root, {});
    ASSERT_TRUE(frame.ok()) << frame.status().message();
    for (int run = 0; run < 2; ++run) {
      const Status status = (*frame)->Run(RunContext{});
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(*(*frame)->Find("i")->Get<Tensor>().data<int64_t>(), static_cast<int64_t>(rounds));
      EXPECT_EQ(*(*frame)->Find("total")->Get<Tensor>().data<float>(), std::min(rounds, 2.0)) << rounds;
    }
  }
}

TEST(ControlFlow, AnEndlessLoopStopsWhenAsked) {
  const ProgramDesc program =
      Parse("blocks { idx: 0 parent_idx: -1\n" + Var("i", "INT64") + Var("n", "INT64") + Var("go", "BOOL") +
            Constant("i", "INT64", 0) + Constant("n", "INT64", 1) + LessThan("i", "n", "go") +
            RunsBlock("while", "Condition", "go", 1) + "}\nblocks { idx: 1 parent_idx: 0 }");
  const auto executable = Executable::Compile(program, AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok());
  std::stop_source stop;
  stop.request_stop();
  RunContext context;
  context.stop = stop.get_token();
  EXPECT_EQ((*frame)->Run(context).code(), StatusCode::kCancelled);
}

TEST(ControlFlow, AMistakeInABlockIsNamedWithItsBlock) {
  ProgramDesc program = CountingProgram(2);
  program.mutable_blocks(2)->mutable_ops(0)->set_type("elementwise_ad");
  program.mutable_blocks(1)->mutable_ops(0)->mutable_inputs(0)->set_arguments(0, "j");
  const std::string error = CompileError(program);
  EXPECT_THAT(error, HasSubstr("block 2 op[0] elementwise_ad: no such operator; the nearest that is supported is "
                               "\"elementwise_add\""));
  EXPECT_THAT(error, HasSubstr("block 1 op[0] increment: input X: there is no variable \"j\""));
}

// It added nothing, and the loop went round without end.
TEST(ControlFlow, HalfAStepOfAnIntegerIsRefused) {
  ProgramDesc program = CountingProgram(2);
  program.mutable_blocks(1)->mutable_ops(0)->mutable_attrs(0)->set_f(0.5F);
  EXPECT_THAT(CompileError(program), HasSubstr("block 1 op[0] increment"));
  EXPECT_THAT(CompileError(program), HasSubstr("step 0.5 is no whole number, and X is int64"));
}

TEST(ControlFlow, AGradientThroughALoopIsRefusedWithWhatToDo) {
  ProgramDesc program = CountingProgram(2);
  OpDesc* grad = program.mutable_blocks(0)->add_ops();
  grad->set_type("while_grad");
  EXPECT_EQ(CompileError(program),
            "block 0 op[" + std::to_string(program.blocks(0).ops_size() - 1) +
                "] while_grad: no such operator, as \"while\" has no gradient here; write what is "
                "learned without it, or mark its outputs stop_gradient");
}

TEST(ControlFlow, AFailureInALoopIsNamedWithItsBlock) {
  ProgramDesc program = CountingProgram(2);
  // The condition is made in the loop alone: the first look finds nothing.
  program.mutable_blocks(0)->mutable_ops()->DeleteSubrange(5, 1);
  const auto executable = Executable::Compile(program, AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok());
  EXPECT_THAT((*frame)->Run(RunContext{}).message(), HasSubstr("op[5] while"));
}

TEST(ControlFlow, RefusesBlocksThatAreNotThereOrRunTwice) {
  ProgramDesc program = CountingProgram(2);
  const auto set_block = [](OpDesc* op, int block) {
    for (OpDesc::Attr& attr : *op->mutable_attrs()) {
      if (attr.name() == "sub_block") attr.set_block_idx(block);
    }
  };
  set_block(program.mutable_blocks(1)->mutable_ops(2), 7);
  EXPECT_THAT(CompileError(program), HasSubstr("block 1 op[2] conditional_block: runs block 7, but the program has 3"));
  set_block(program.mutable_blocks(1)->mutable_ops(2), 1);
  EXPECT_THAT(CompileError(program), HasSubstr("block 1 op[2] conditional_block: runs block 1, which runs already"));
}

/// y = 3 x, if yes; then y's gradient 2 goes back to x.
ProgramDesc BranchWithGradient(bool yes) {
  const std::string grads = "inputs { parameter: \"Out@GRAD\" arguments: \"y@GRAD\" } ";
  const auto block_op = [](const std::string& type, int block, const std::string& more) {
    return "ops { type: \"" + type + "\" inputs { parameter: \"Cond\" arguments: \"yes\" } " +
           "inputs { parameter: \"Input\" arguments: \"x\" } " + more +
           " attrs { name: \"sub_block\" type: BLOCK block_idx: " + std::to_string(block) +
           " } attrs { name: \"is_scalar_condition\" type: BOOLEAN b: true } }\n";
  };
  const auto scale = [](const std::string& x, const std::string& out) {
    return "ops { type: \"scale\" inputs { parameter: \"X\" arguments: \"" + x +
           "\" } outputs { parameter: \"Out\" arguments: \"" + out +
           "\" } attrs { name: \"scale\" type: FLOAT f: 3 } }\n";
  };
  return Parse(
      "blocks { idx: 0 parent_idx: -1\n" + Var("x", "FP32") + Var("y", "FP32") + Var("x@GRAD", "FP32") +
      Var("y@GRAD", "FP32") + Var("a", "INT64") + Var("b", "INT64") + Var("yes", "BOOL") + Constant("x", "FP32", 5) +
      Constant("y@GRAD", "FP32", 2) + Constant("a", "INT64", yes ? 0 : 1) + Constant("b", "INT64", 1) +
      LessThan("a", "b", "yes") + block_op("conditional_block", 1, "outputs { parameter: \"Out\" arguments: \"y\" }") +
      block_op("conditional_block_grad", 2, grads + "outputs { parameter: \"Input@GRAD\" arguments: \"x@GRAD\" }") +
      "}\nblocks { idx: 1 parent_idx: 0\n" + scale("x", "y") +
      "}\nblocks { idx: 2 parent_idx: 0 forward_block_idx: 1\n" + Var("x@GRAD", "FP32") + scale("y@GRAD", "x@GRAD") +
      "}");
}

TEST(ControlFlow, TheGradientOfABranchThatDidNotRunIsZero) {
  for (const bool yes : {true, false}) {
    const auto executable = Executable::Compile(BranchWithGradient(yes), AllOps(), {});
    ASSERT_TRUE(executable.ok()) << executable.status().message();
    Scope root;
    const auto frame = Frame::Create(**executable, nullptr, root, {});
    ASSERT_TRUE(frame.ok()) << frame.status().message();
    const Status status = (*frame)->Run(RunContext{});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(*(*frame)->Find("x@GRAD")->Get<Tensor>().data<float>(), yes ? 6 : 0);
  }
}

TEST(ControlFlow, ABranchHandsItsResultOutAndTakesItsGradientBack) {
  const auto select = [](const std::string& type, const std::string& x, const std::string& out) {
    return "ops { type: \"" + type + "\" inputs { parameter: \"X\" " + x +
           " } inputs { parameter: \"Mask\" arguments: \"mask\" } outputs { parameter: \"Out\" " + out + " } }\n";
  };
  const auto program = [&](double mask) {
    return Parse("blocks { idx: 0 parent_idx: -1\n" + Var("p", "FP32") + Var("q", "FP32") + Var("mask", "INT64") +
                 Var("out", "FP32") + Constant("p", "FP32", 5) + Constant("q", "FP32", 7) +
                 Constant("mask", "INT64", mask) +
                 select("select_input", "arguments: [\"p\", \"q\"]", "arguments: \"out\"") + Constant("p", "FP32", 0) +
                 select("select_output", "arguments: \"out\"", "arguments: [\"q\", \"p\"]") + "}");
  };
  const auto executable = Executable::Compile(program(1), AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  Scope root;
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  ASSERT_TRUE((*frame)->Run(RunContext{}).ok());
  EXPECT_EQ(*(*frame)->Find("p")->Get<Tensor>().data<float>(), 7);

  const auto outside = Executable::Compile(program(2), AllOps(), {});
  ASSERT_TRUE(outside.ok()) << outside.status().message();
  const auto second = Frame::Create(**outside, nullptr, root, {});
  ASSERT_TRUE(second.ok());
  EXPECT_THAT((*second)->Run(RunContext{}).message(), HasSubstr("Mask is 2, of 2 branches"));
}

TEST(ControlFlow, ANameThatHidesAnotherIsTheBlocksOwn) {
  ProgramDesc program = CountingProgram(2);
  *program.mutable_blocks(2)->add_vars() = program.blocks(0).vars(5);  // "total"
  const auto executable = Executable::Compile(program, AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  EXPECT_TRUE((*executable)->vars().contains("total@block_2"));
  EXPECT_EQ(OutputArguments((*executable)->ops(2)[0], "Out"), std::vector<std::string>{"total@block_2"});
}

TEST(ControlFlow, RefusesANameThatStandsTwiceInABlock) {
  ProgramDesc program = CountingProgram(2);
  *program.mutable_blocks(0)->add_vars() = program.blocks(0).vars(0);
  EXPECT_THAT(CompileError(program), HasSubstr("block 0 declares \"i\" twice"));
}

TEST(ControlFlow, RefusesAConditionThatIsNoBool) {
  ProgramDesc program = CountingProgram(2);
  program.mutable_blocks(0)->mutable_ops(6)->mutable_inputs(0)->set_arguments(0, "total");
  EXPECT_THAT(CompileError(program), HasSubstr("Condition"));
}

}  // namespace
}  // namespace millrace
