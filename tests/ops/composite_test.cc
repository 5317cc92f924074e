#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "allocation_counter.h"
#include "ops/op_case_inputs.h"
#include "ops/registry.h"
#include "program/expansion.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Bindings = std::vector<std::pair<std::string, std::vector<std::string>>>;

OpDesc MakeOp(const std::string& type, const Bindings& in, const Bindings& out) {
  OpDesc op;
  op.set_type(type);
  for (const auto& [parameter, names] : in) SetInput(op, parameter, names);
  for (const auto& [parameter, names] : out) SetOutput(op, parameter, names);
  return op;
}

VarMeta MetaOf(Dims dims) {
  VarMeta meta;
  meta.dims = dims;
  return meta;
}

std::unique_ptr<OpSession> SessionOf(const std::vector<OpDesc>& ops, const VarMetas& inputs,
                                     const OpRegistry& registry = AllOps()) {
  auto session = OpSession::Create(ops, inputs, registry);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  return std::move(*session);
}

void Put(OpSession& session, const std::string& name, const Dims& dims, const std::vector<float>& values) {
  std::copy(values.begin(), values.end(), session.tensor(name)->Resize<float>(dims));
}

std::vector<float> Values(OpSession& session, const std::string& name) {
  const Tensor& tensor = *session.tensor(name);
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

/// Silu of Paddle's operators: Out = X * sigmoid(X), whose gradient reads `reads`.
OpRegistry WithOwnSilu(GradArgs reads) {
  OpRegistry registry = AllOps().Copy();
  registry.Add("own_silu")
      .Doc("X * sigmoid(X).")
      .Input("X", "")
      .Output("Out", "")
      .Grad(std::move(reads))
      .Expand([](Expansion& e) {
        const auto share = e.Add("sigmoid", {{"X", e.In("X")}});
        e.SetOut("Out", e.Add("elementwise_mul", {{"X", e.In("X")}, {"Y", share}}));
        return Status::Ok();
      });
  registry.AddGradient("own_silu");
  return registry;
}

// Lists, profiles and saved programs name what the author wrote.
TEST(CompositeOperator, StaysInTheProgram) {
  ProgramDesc program;
  BlockDesc* const block = program.add_blocks();
  for (const char* name : {"x", "y", "out", "residual"}) {
    VarDesc* const var = block->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(VarType::LOD_TENSOR);
    auto* const tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    tensor->set_data_type(VarType::FP32);
    for (const int64_t size : {-1, 1}) tensor->add_dims(size);
  }
  *block->add_ops() =
      MakeOp("huber_loss", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}, {"Residual", {"residual"}}});
  const auto executable = Executable::Compile(program, AllOps(), {});
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  EXPECT_EQ(PrintOps((*executable)->ops()), "len(ops)=1\nop[0]->Type(): huber_loss\n");
}

TEST(CompositeOperator, ShapeFaultsNameItAndItsVariables) {
  const OpDesc op = MakeOp("huber_loss", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}, {"Residual", {"r"}}});
  EXPECT_THAT(OpSession::Create({op}, {{"x", MetaOf({-1, 2})}, {"y", MetaOf({-1, 3})}}, AllOps()).status().message(),
              HasSubstr(R"(huber_loss (Out: "out"): shapes differ: "x" [-1, 2], "y" [-1, 3])"));
  const auto session = SessionOf({op}, {{"x", MetaOf({-1, 2})}, {"y", MetaOf({-1, 2})}});
  Put(*session, "x", {2, 2}, {1, 2, 3, 4});
  Put(*session, "y", {1, 2}, {1, 2});
  EXPECT_THAT(session->Run().message(),
              HasSubstr(R"(op[0] huber_loss (Out: "out"): shapes differ: "x" [2, 2], "y" [1, 2])"));
}

TEST(CompositeOperator, MayWriteTheVariableThatItReads) {
  const auto session =
      SessionOf({MakeOp("huber_loss", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"x"}}, {"Residual", {"y"}}})},
                {{"x", MetaOf({-1, 1})}, {"y", MetaOf({-1, 1})}});
  Put(*session, "x", {2, 1}, {1, 1});
  Put(*session, "y", {2, 1}, {1.5F, 4});
  ASSERT_TRUE(session->Run().ok());
  EXPECT_THAT(Values(*session, "x"), ElementsAre(0.125F, 2.5F));
  EXPECT_THAT(Values(*session, "y"), ElementsAre(0.5F, 3));
}

// X X, of which each factor has a gradient of its own.
TEST(CompositeOperator, HasGradientsOfTwoInputsThatAreOneVariable) {
  const auto session = SessionOf({MakeOp("mul_grad", {{"X", {"x"}}, {"Y", {"x"}}, {"Out@GRAD", {"g"}}},
                                         {{"X@GRAD", {"left"}}, {"Y@GRAD", {"right"}}})},
                                 {{"x", MetaOf({2, 2})}, {"g", MetaOf({2, 2})}});
  Put(*session, "x", {2, 2}, {1, 2, 3, 4});
  Put(*session, "g", {2, 2}, {1, 0, 0, 0});
  ASSERT_TRUE(session->Run().ok());
  EXPECT_THAT(Values(*session, "left"), ElementsAre(1, 3, 0, 0));
  EXPECT_THAT(Values(*session, "right"), ElementsAre(1, 0, 2, 0));
}

TEST(CompositeOperator, HasTheGradientOfItsExpansion) {
  const OpRegistry registry = WithOwnSilu({.inputs = {"X"}});
  const VarMetas metas = {{"x", MetaOf({-1, 1})}, {"g", MetaOf({-1, 1})}};
  const auto gradient = [&](const std::string& type) {
    const auto session =
        SessionOf({MakeOp(type, {{"X", {"x"}}, {"Out@GRAD", {"g"}}}, {{"X@GRAD", {"dx"}}})}, metas, registry);
    Put(*session, "x", {3, 1}, {-2, 0, 3});
    Put(*session, "g", {3, 1}, {1, 2, 3});
    EXPECT_TRUE(session->Run().ok());
    return Values(*session, "dx");
  };
  EXPECT_THAT(gradient("own_silu_grad"), testing::Pointwise(testing::FloatNear(1e-6F), gradient("silu_grad")));
}

TEST(CompositeOperator, WhoseGradientReadsTooLittleIsRefused) {
  const OpRegistry registry = WithOwnSilu({.outputs = {"Out"}});
  const OpDesc gradient = MakeOp("own_silu_grad", {{"Out", {"out"}}, {"Out@GRAD", {"g"}}}, {{"X@GRAD", {"dx"}}});
  const auto session = OpSession::Create({gradient}, {{"out", MetaOf({-1, 1})}, {"g", MetaOf({-1, 1})}}, registry);
  EXPECT_THAT(session.status().message(), HasSubstr("own_silu"));
  EXPECT_FALSE(session.ok());
}

/// Forward and gradient of a case, with everything that they read.
TEST(CompositeOperator, AllocatesNothingInAWarmBatch) {
  for (const OpCase& c : OpCases()) {
    if (AllOps().Find(c.op)->expand == nullptr) continue;
    SCOPED_TRACE(c.op + " " + c.title);
    const auto forward = SessionOf({ForwardOp(c)}, InputMetas(c));
    Rng rng(7);
    for (const CaseInput& input : c.inputs) Fill(input, 5, rng, {forward.get()});
    ASSERT_TRUE(forward->Run().ok());
    VarMetas metas = InputMetas(c);
    std::vector<OpDesc> ops = GradientOps(c);
    ops.insert(ops.begin(), ForwardOp(c));
    for (const std::string& name : c.objective) {
      metas[GradName(name)] = MetaOf(forward->tensor(name)->dims());
      metas[GradName(name)].dims.set(0, -1);
    }
    const auto both = SessionOf(ops, metas);
    for (const CaseInput& input : c.inputs) Fill(input, 5, rng, {both.get()});
    for (const std::string& name : c.objective) {
      const Dims dims = forward->tensor(name)->dims();
      std::fill_n(both->tensor(GradName(name))->Resize<float>(dims), dims.numel(), 1.0F);
    }
    for (int warm = 0; warm < 2; ++warm) ASSERT_TRUE(both->Run().ok());
    const AllocationCounter allocations;
    const bool ran = both->Run().ok();
    EXPECT_EQ(allocations.count(), 0);
    EXPECT_TRUE(ran);
  }
}

}  // namespace
}  // namespace millrace
