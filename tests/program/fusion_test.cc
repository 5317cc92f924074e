#include "program/passes/fusion.h"

#include <gtest/gtest.h>

#include <utility>

#include "allocation_counter.h"
#include "program/backward.h"
#include "program/block_builder.h"
#include "program/passes/op_graph.h"
#include "stub_ops.h"

namespace millrace {
namespace {

using Bindings = std::vector<std::pair<std::string, std::vector<std::string>>>;

// Programs over slots c1..c3 (sparse ids), dense [-1, 4], label, that end in a mean "loss".
class FusionTest : public ::testing::Test {
 protected:
  FusionTest() : registry_(StubOps()) {
    program_.add_blocks();
    Result<BlockBuilder> builder = BlockBuilder::Create(*program_.mutable_blocks(0), registry_);
    builder_ = std::make_unique<BlockBuilder>(std::move(*builder));
    for (const char* slot : {"c1", "c2", "c3"}) Var(slot, {-1, 1}, DType::kInt64, 1).set_stop_gradient(true);
    Var("dense", {-1, 4}, DType::kFloat32, 0).set_stop_gradient(true);
    Var("label", {-1, 1}, DType::kInt64, 0).set_stop_gradient(true);
    for (const char* table : {"t", "u"}) Param(table, {100, 2});
    VarDesc& rate = Param("rate", {1});
    rate.set_is_parameter(false);
    rate.set_stop_gradient(true);
  }
  VarDesc& Var(const std::string& name, const Dims& dims, DType dtype, int lod_level) {
    VarMeta meta;
    meta.dims = dims;
    meta.dtype = dtype;
    meta.lod_level = lod_level;
    return builder_->Declare(name, meta);
  }
  VarDesc& Param(const std::string& name, const Dims& dims) {
    VarMeta meta;
    meta.dims = dims;
    meta.persistable = true;
    VarDesc& var = builder_->Declare(name, meta);
    var.set_is_parameter(true);
    return var;
  }
  void Op(const std::string& type, const Bindings& inputs, const Bindings& outputs,
          const std::vector<std::pair<std::string, AttrValue>>& attrs = {}) {
    OpDesc op;
    op.set_type(type);
    for (const auto& [parameter, names] : inputs) SetInput(op, parameter, names);
    for (const auto& [parameter, names] : outputs) SetOutput(op, parameter, names);
    for (const auto& [name, value] : attrs) SetAttr(op, name, value);
    const Status status = builder_->Append(std::move(op), OpRole::kForward);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  // lookup_table and sequence_pool of one slot into `out`.
  void Pool(const std::string& slot, const std::string& table, const std::string& out, const char* type = "SUM") {
    Op("lookup_table", {{"Ids", {slot}}, {"W", {table}}}, {{"Out", {out + ".rows"}}}, {{"padding_idx", int64_t{-1}}});
    Op("sequence_pool", {{"X", {out + ".rows"}}}, {{"Out", {out}}}, {{"pooltype", std::string(type)}});
  }
  void Concat(const std::vector<std::string>& xs, const std::string& out) {
    Op("concat", {{"X", xs}}, {{"Out", {out}}}, {{"axis", int64_t{1}}});
  }
  void Loss(const std::string& x) { Op("mean", {{"X", {x}}}, {{"Out", {"loss"}}}); }

  // Adds the gradients of "loss", then updates by sgd for each parameter.
  void Train() {
    const Result<std::vector<ParamGrad>> grads = AppendBackward(program_, "loss", registry_, 0);
    ASSERT_TRUE(grads.ok()) << grads.status().ToString();
    builder_ = std::make_unique<BlockBuilder>(*BlockBuilder::Create(*program_.mutable_blocks(0), registry_));
    for (const ParamGrad& grad : *grads) {
      Op("sgd", {{"Param", {grad.param}}, {"Grad", {grad.grad}}, {"LearningRate", {"rate"}}},
         {{"ParamOut", {grad.param}}});
    }
  }
  std::string Fused(const std::vector<std::string>& fetches = {"loss"}) {
    const auto& ops = program_.blocks(0).ops();
    fused_ = OpList(std::vector<OpDesc>(ops.begin(), ops.end()));
    vars_ = builder_->vars();
    const Status status = ApplyFusionPasses(fused_, vars_, registry_, fetches);
    return status.ok() ? Show(fused_) : status.ToString();
  }

  OpRegistry registry_;
  ProgramDesc program_;
  std::unique_ptr<BlockBuilder> builder_;
  OpList fused_;
  VarMetas vars_;
};

/// A program of its own size.
class WideProgram : public FusionTest {
 public:
  /// Of the gradients and the fusion of a concat of so many pools, all of one table.
  int64_t Allocations(int pools) {
    std::vector<std::string> pooled;
    for (int i = 0; i < pools; ++i) {
      pooled.push_back("p" + std::to_string(i));
      Pool("c1", "t", pooled.back());
    }
    Concat(pooled, "all");
    Loss("all");
    const AllocationCounter counter;
    Train();
    Fused();
    return counter.count();
  }

 private:
  void TestBody() override {}
};

// A list was copied for each of its elements.
TEST(WideFusionTest, AllocationsGrowAsThePoolsOfOneTable) {
  const int64_t few = WideProgram().Allocations(100);
  EXPECT_LT(WideProgram().Allocations(800), 9 * few);
}

// As a program has it that was lowered fused, whose forward part is evaluated alone.
TEST_F(FusionTest, APoolWithoutAGradientKeepsNoRows) {
  Op("fused_slots_pool", {{"Ids", {"c1", "c2"}}, {"W", {"t", "t"}}}, {{"Out", {"all"}}, {"Rows", {"all@ROWS"}}});
  Loss("all");
  EXPECT_EQ(Fused(), "fused_slots_pool(Ids=c1,c2 W=t,t -> Out=all)\nmean(X=all -> Out=loss)\n");
  EXPECT_FALSE(vars_.contains("all@ROWS"));
  EXPECT_EQ(Fused({"loss", "all@ROWS"}),
            "fused_slots_pool(Ids=c1,c2 W=t,t -> Out=all Rows=all@ROWS)\nmean(X=all -> Out=loss)\n");
}

TEST_F(FusionTest, OneTableOfSeveralSlots) {
  Pool("c1", "t", "p1");
  Pool("c2", "t", "p2");
  Pool("c3", "t", "p3");
  Concat({"p1", "p2", "p3"}, "all");
  Loss("all");
  Train();
  EXPECT_EQ(Fused(),
            "fused_slots_pool(Ids=c1,c2,c3 W=t,t,t -> Out=all Rows=all@ROWS)\n"
            "mean(X=all -> Out=loss)\n"
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=all Out@GRAD=loss@GRAD -> X@GRAD=all@GRAD)\n"
            "fused_slots_pool_grad(Ids=c1,c2,c3 W=t,t,t Rows=all@ROWS Out@GRAD=all@GRAD -> W@GRAD=t@GRAD)\n"
            "sgd(Param=t Grad=t@GRAD LearningRate=rate -> ParamOut=t)\n");
  EXPECT_TRUE(vars_.contains("t@GRAD"));
  EXPECT_TRUE(vars_.contains("c1")) << "slots are still fed";
  EXPECT_FALSE(vars_.contains("p1.rows")) << "nobody writes it any more";
}

TEST_F(FusionTest, TablesMayDifferAndDenseSlotsAreCopiedAlong) {
  Pool("c1", "t", "p1");
  Pool("c2", "u", "p2");
  Pool("c3", "t", "p3");
  Concat({"p1", "dense", "p2", "p3"}, "all");
  Loss("all");
  Train();
  EXPECT_EQ(Fused(),
            "fused_slots_pool(Ids=c1,c2,c3 W=t,u,t Dense=dense -> Out=all Rows=all@ROWS)\n"
            "mean(X=all -> Out=loss)\n"
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=all Out@GRAD=loss@GRAD -> X@GRAD=all@GRAD)\n"
            "fused_slots_pool_grad(Ids=c1,c2,c3 W=t,u,t Rows=all@ROWS Out@GRAD=all@GRAD -> W@GRAD=t@GRAD,u@GRAD)\n"
            "fused_sgd(Param=t,u Grad=t@GRAD,u@GRAD LearningRate=rate -> ParamOut=t,u)\n");
  const OpDesc::Attr* at = FindAttr(fused_[0], "dense_at");
  ASSERT_NE(at, nullptr);
  ASSERT_EQ(at->ints_size(), 1);
  EXPECT_EQ(at->ints(0), 1) << "one slot stands before it";
  const OpDesc::Attr* widths = FindAttr(fused_[4], "dense_widths");
  ASSERT_NE(widths, nullptr);
  EXPECT_EQ(widths->ints(0), 4);
}

// "d" is a concat of its own, as an embedding layer makes it, and stands in a second one beside a dense slot.
TEST_F(FusionTest, ConcatOfConcatIsOne) {
  Pool("c1", "t", "p1");
  Pool("c2", "t", "p2");
  Concat({"p1", "p2"}, "d");
  Concat({"dense", "d"}, "x");
  Loss("x");
  Train();
  EXPECT_EQ(Fused(),
            "fused_slots_pool(Ids=c1,c2 W=t,t Dense=dense -> Out=x Rows=x@ROWS)\n"
            "mean(X=x -> Out=loss)\n"
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=x Out@GRAD=loss@GRAD -> X@GRAD=x@GRAD)\n"
            "fused_slots_pool_grad(Ids=c1,c2 W=t,t Rows=x@ROWS Out@GRAD=x@GRAD -> W@GRAD=t@GRAD)\n"
            "sgd(Param=t Grad=t@GRAD LearningRate=rate -> ParamOut=t)\n");
}

TEST_F(FusionTest, AStopEndsIt) {
  Pool("c1", "t", "p1");
  Pool("c2", "t", "p2");
  Concat({"p1", "p2"}, "d");
  Loss("d");
  Train();
  std::stop_source stop;
  const auto fuse = [&] {
    OpList ops;
    for (const OpDesc& op : program_.blocks(0).ops()) ops.Add(std::make_shared<const OpDesc>(op));
    VarMetas vars = builder_->vars();
    return ApplyFusionPasses(ops, vars, registry_, {"loss"}, stop.get_token());
  };
  EXPECT_TRUE(fuse().ok());
  stop.request_stop();
  EXPECT_EQ(fuse().code(), StatusCode::kCancelled);
}

TEST_F(FusionTest, FetchedVariablesStay) {
  Pool("c1", "t", "p1");
  Pool("c2", "t", "p2");
  Concat({"p1", "p2"}, "d");
  Concat({"d", "dense"}, "x");
  Loss("x");
  EXPECT_EQ(Fused({"loss", "d"}),
            "fused_slots_pool(Ids=c1,c2 W=t,t -> Out=d)\n"
            "concat(X=d,dense -> Out=x)\n"
            "mean(X=x -> Out=loss)\n");
  EXPECT_EQ(Fused({"loss", "p1", "d"}),
            "fused_slots_pool(Ids=c1 W=t -> Out=p1)\n"
            "fused_slots_pool(Ids=c2 W=t -> Out=p2)\n"
            "concat(X=p1,p2 -> Out=d)\n"
            "concat(X=d,dense -> Out=x)\n"
            "mean(X=x -> Out=loss)\n");
  EXPECT_EQ(Fused({"loss", "p1.rows"}),
            "lookup_table(Ids=c1 W=t -> Out=p1.rows)\n"
            "sequence_pool(X=p1.rows -> Out=p1)\n"
            "fused_slots_pool(Ids=c2 W=t -> Out=p2)\n"
            "concat(X=p1,p2 -> Out=d)\n"
            "concat(X=d,dense -> Out=x)\n"
            "mean(X=x -> Out=loss)\n");
}

TEST_F(FusionTest, RunsOfEqualPoolingBesideOthers) {
  Param("w", {4, 2});
  Op("mul", {{"X", {"dense"}}, {"Y", {"w"}}}, {{"Out", {"h"}}});
  Pool("c1", "t", "p1");
  Pool("c2", "u", "p2");
  Pool("c3", "t", "p3", "AVERAGE");
  Concat({"h", "p1", "p2", "p3"}, "x");
  Loss("x");
  Train();
  EXPECT_EQ(Fused(),
            "mul(X=dense Y=w -> Out=h)\n"
            "fused_slots_pool(Ids=c1,c2 W=t,u -> Out=x.pool_1 Rows=x.pool_1@ROWS)\n"
            "fused_slots_pool(Ids=c3 W=t -> Out=p3 Rows=p3@ROWS)\n"
            "concat(X=h,x.pool_1,p3 -> Out=x)\n"
            "mean(X=x -> Out=loss)\n"
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=x Out@GRAD=loss@GRAD -> X@GRAD=x@GRAD)\n"
            "concat_grad(X=h,x.pool_1,p3 Out@GRAD=x@GRAD -> X@GRAD=h@GRAD,x.pool_1@GRAD,p3@GRAD)\n"
            "fused_slots_pool_grad(Ids=c3 W=t Rows=p3@ROWS Out@GRAD=p3@GRAD -> W@GRAD=t@GRAD@RENAME@block0@0)\n"
            "fused_slots_pool_grad(Ids=c1,c2 W=t,u Rows=x.pool_1@ROWS Out@GRAD=x.pool_1@GRAD -> "
            "W@GRAD=t@GRAD@RENAME@block0@1,u@GRAD)\n"
            "mul_grad(X=dense Y=w Out@GRAD=h@GRAD -> Y@GRAD=w@GRAD)\n"
            "sum(X=t@GRAD@RENAME@block0@0,t@GRAD@RENAME@block0@1 -> Out=t@GRAD)\n"
            "fused_sgd(Param=t,u,w Grad=t@GRAD,u@GRAD,w@GRAD LearningRate=rate -> ParamOut=t,u,w)\n");
}

// Paddle 2.x: lookup_table_v2 keeps an axis that reshape2 takes away.
TEST_F(FusionTest, SecondLookupTableWithReshape) {
  for (const std::string slot : {"c1", "c2"}) {
    Op("lookup_table_v2", {{"Ids", {slot}}, {"W", {"t"}}}, {{"Out", {slot + ".rows"}}}, {{"padding_idx", int64_t{0}}});
    Op("sequence_pool", {{"X", {slot + ".rows"}}}, {{"Out", {slot + ".pool"}}, {"MaxIndex", {slot + ".index"}}},
       {{"pooltype", std::string("AVERAGE")}});
    Op("reshape2", {{"X", {slot + ".pool"}}}, {{"Out", {slot + ".flat"}}, {"XShape", {slot + ".shape"}}},
       {{"shape", std::vector<int64_t>{-1, 2}}});
  }
  Concat({"c1.flat", "c2.flat", "dense"}, "x");
  Loss("x");
  Train();
  EXPECT_EQ(Fused(),
            "fused_slots_pool(Ids=c1,c2 W=t,t Dense=dense -> Out=x Rows=x@ROWS)\n"
            "mean(X=x -> Out=loss)\n"
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=x Out@GRAD=loss@GRAD -> X@GRAD=x@GRAD)\n"
            "fused_slots_pool_grad(Ids=c1,c2 W=t,t Rows=x@ROWS Out@GRAD=x@GRAD -> W@GRAD=t@GRAD)\n"
            "sgd(Param=t Grad=t@GRAD LearningRate=rate -> ParamOut=t)\n");
  EXPECT_EQ(FindAttr(fused_[0], "padding_idx")->i(), 0);
  EXPECT_EQ(FindAttr(fused_[0], "pooltype")->s(), "AVERAGE");
}

TEST_F(FusionTest, MaxPoolingStaysAsItIs) {
  Pool("c1", "t", "p1", "MAX");
  Loss("p1");
  EXPECT_EQ(Fused(),
            "lookup_table(Ids=c1 W=t -> Out=p1.rows)\n"
            "sequence_pool(X=p1.rows -> Out=p1)\n"
            "mean(X=p1 -> Out=loss)\n");
}

TEST_F(FusionTest, FullyConnectedLayersWithAndWithoutActivation) {
  Param("w0", {4, 3});
  Param("b0", {3});
  Param("w1", {3, 2});
  Param("b1", {2});
  Op("mul", {{"X", {"dense"}}, {"Y", {"w0"}}}, {{"Out", {"m0"}}});
  Op("elementwise_add", {{"X", {"m0"}}, {"Y", {"b0"}}}, {{"Out", {"a0"}}}, {{"axis", int64_t{1}}});
  Op("relu", {{"X", {"a0"}}}, {{"Out", {"h"}}});
  Op("mul", {{"X", {"h"}}, {"Y", {"w1"}}}, {{"Out", {"m1"}}});
  Op("elementwise_add", {{"X", {"m1"}}, {"Y", {"b1"}}}, {{"Out", {"y"}}}, {{"axis", int64_t{1}}});
  Loss("y");
  Train();
  EXPECT_EQ(Fused(),
            "fused_fc(X=dense W=w0 Bias=b0 -> Out=h)\n"
            "fused_fc(X=h W=w1 Bias=b1 -> Out=y)\n"
            "mean(X=y -> Out=loss)\n"
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=y Out@GRAD=loss@GRAD -> X@GRAD=y@GRAD)\n"
            "fused_fc_grad(X=h W=w1 Out=y Out@GRAD=y@GRAD -> X@GRAD=h@GRAD W@GRAD=w1@GRAD Bias@GRAD=b1@GRAD)\n"
            "fused_fc_grad(X=dense W=w0 Out=h Out@GRAD=h@GRAD -> W@GRAD=w0@GRAD Bias@GRAD=b0@GRAD)\n"
            "fused_sgd(Param=w0,b0,w1,b1 Grad=w0@GRAD,b0@GRAD,w1@GRAD,b1@GRAD LearningRate=rate -> "
            "ParamOut=w0,b0,w1,b1)\n");
  EXPECT_EQ(FindAttr(fused_[0], "activation")->s(), "relu");
  EXPECT_EQ(FindAttr(fused_[1], "activation")->s(), "");
}

TEST_F(FusionTest, AFetchedSumKeepsTheActivationApart) {
  Param("w0", {4, 3});
  Param("b0", {3});
  Op("mul", {{"X", {"dense"}}, {"Y", {"w0"}}}, {{"Out", {"m0"}}});
  Op("elementwise_add", {{"X", {"m0"}}, {"Y", {"b0"}}}, {{"Out", {"a0"}}}, {{"axis", int64_t{1}}});
  Op("relu", {{"X", {"a0"}}}, {{"Out", {"h"}}});
  EXPECT_EQ(Fused({"h", "a0"}),
            "fused_fc(X=dense W=w0 Bias=b0 -> Out=a0)\n"
            "relu(X=a0 -> Out=h)\n");
  EXPECT_EQ(Fused({"h", "m0"}),
            "mul(X=dense Y=w0 -> Out=m0)\n"
            "elementwise_add(X=m0 Y=b0 -> Out=a0)\n"
            "relu(X=a0 -> Out=h)\n");
}

TEST_F(FusionTest, SoftmaxAndItsCrossEntropyAreOneLoss) {
  Param("w0", {4, 3});
  Op("mul", {{"X", {"dense"}}, {"Y", {"w0"}}}, {{"Out", {"logits"}}});
  Op("softmax", {{"X", {"logits"}}}, {{"Out", {"p"}}});
  Op("round", {{"X", {"p"}}}, {{"Out", {"class"}}});
  Op("cross_entropy", {{"X", {"p"}}, {"Label", {"label"}}}, {{"Y", {"cost"}}}, {{"ignore_index", int64_t{7}}});
  Loss("cost");
  EXPECT_EQ(Fused({"loss", "class"}),
            "mul(X=dense Y=w0 -> Out=logits)\n"
            "softmax_with_cross_entropy(Logits=logits Label=label -> Softmax=p Loss=cost)\n"
            "round(X=p -> Out=class)\n"
            "mean(X=cost -> Out=loss)\n");
  Train();
  EXPECT_EQ(Fused({"loss", "class"}),
            "mul(X=dense Y=w0 -> Out=logits)\n"
            "softmax_with_cross_entropy(Logits=logits Label=label -> Softmax=p Loss=cost)\n"
            "round(X=p -> Out=class)\n"
            "mean(X=cost -> Out=loss)\n"
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=cost Out@GRAD=loss@GRAD -> X@GRAD=cost@GRAD)\n"
            "softmax_with_cross_entropy_grad(Label=label Softmax=p Loss@GRAD=cost@GRAD -> Logits@GRAD=logits@GRAD)\n"
            "mul_grad(X=dense Y=w0 Out@GRAD=logits@GRAD -> Y@GRAD=w0@GRAD)\n"
            "sgd(Param=w0 Grad=w0@GRAD LearningRate=rate -> ParamOut=w0)\n");
  EXPECT_EQ(FindAttr(fused_[1], "ignore_index")->i(), 7);
  EXPECT_EQ(FindAttr(fused_[6], "ignore_index")->i(), 7);
}

TEST_F(FusionTest, ASoftmaxWhoseGradientHasTwoSourcesStaysApart) {
  Param("w0", {4, 3});
  Op("mul", {{"X", {"dense"}}, {"Y", {"w0"}}}, {{"Out", {"logits"}}});
  Op("softmax", {{"X", {"logits"}}}, {{"Out", {"p"}}});
  Op("cross_entropy", {{"X", {"p"}}, {"Label", {"label"}}}, {{"Y", {"cost"}}});
  Op("mean", {{"X", {"p"}}}, {{"Out", {"other"}}});
  Op("mean", {{"X", {"cost"}}}, {{"Out", {"entropy"}}});
  Op("elementwise_add", {{"X", {"entropy"}}, {"Y", {"other"}}}, {{"Out", {"loss"}}});
  Train();
  EXPECT_EQ(Fused().find("softmax_with_cross_entropy"), std::string::npos);
}

TEST_F(FusionTest, LinearLayersOfPaddleAreFullyConnectedUnlessTransposed) {
  Param("w0", {4, 4});
  Param("b0", {4});
  Op("matmul_v2", {{"X", {"dense"}}, {"Y", {"w0"}}}, {{"Out", {"m0"}}}, {{"trans_y", false}});
  Op("elementwise_add", {{"X", {"m0"}}, {"Y", {"b0"}}}, {{"Out", {"a0"}}}, {{"axis", int64_t{-1}}});
  Op("relu", {{"X", {"a0"}}}, {{"Out", {"h"}}});
  Op("matmul_v2", {{"X", {"h"}}, {"Y", {"w0"}}}, {{"Out", {"m1"}}}, {{"trans_y", true}});
  Op("elementwise_add", {{"X", {"m1"}}, {"Y", {"b0"}}}, {{"Out", {"y"}}}, {{"axis", int64_t{-1}}});
  EXPECT_EQ(Fused({"y"}),
            "fused_fc(X=dense W=w0 Bias=b0 -> Out=h)\n"
            "matmul_v2(X=h Y=w0 -> Out=m1)\n"
            "elementwise_add(X=m1 Y=b0 -> Out=y)\n");
}

TEST_F(FusionTest, LinearLayersOverMoreAxesAreFullyConnected) {
  Param("w0", {4, 4});
  Param("b0", {4});
  Param("w1", {4, 4});
  Var("fields", {-1, 3, 4}, DType::kFloat32, 0);
  Op("matmul_v2", {{"X", {"fields"}}, {"Y", {"w0"}}}, {{"Out", {"m0"}}});
  Op("elementwise_add", {{"X", {"m0"}}, {"Y", {"b0"}}}, {{"Out", {"a0"}}}, {{"axis", int64_t{2}}});
  Op("softmax", {{"X", {"a0"}}}, {{"Out", {"h"}}}, {{"axis", int64_t{2}}});
  // The middle axis is not that of the columns.
  Op("matmul_v2", {{"X", {"h"}}, {"Y", {"w1"}}}, {{"Out", {"m1"}}});
  Op("elementwise_add", {{"X", {"m1"}}, {"Y", {"b0"}}}, {{"Out", {"a1"}}});
  Op("softmax", {{"X", {"a1"}}}, {{"Out", {"y"}}}, {{"axis", int64_t{1}}});
  EXPECT_EQ(Fused({"y"}),
            "fused_fc(X=fields W=w0 Bias=b0 -> Out=h)\n"
            "fused_fc(X=h W=w1 Bias=b0 -> Out=a1)\n"
            "softmax(X=a1 -> Out=y)\n");
  EXPECT_EQ(IntAttr(fused_[0], "in_num_col_dims", 1), 2);
}

TEST_F(FusionTest, UpdatesWithOtherRatesStayApart) {
  Param("w0", {4, 3});
  Param("w1", {4, 3});
  Param("w2", {4, 3});
  Param("rate_2", {1}).set_is_parameter(false);
  for (const char* grad : {"g0", "g1", "g2"}) Var(grad, {4, 3}, DType::kFloat32, 0);
  const auto update = [this](const char* param, const char* grad, const char* rate) {
    Op("sgd", {{"Param", {param}}, {"Grad", {grad}}, {"LearningRate", {rate}}}, {{"ParamOut", {param}}});
  };
  update("w0", "g0", "rate");
  update("w1", "g1", "rate_2");
  update("w2", "g2", "rate");
  EXPECT_EQ(Fused(),
            "sgd(Param=w1 Grad=g1 LearningRate=rate_2 -> ParamOut=w1)\n"
            "fused_sgd(Param=w0,w2 Grad=g0,g2 LearningRate=rate -> ParamOut=w0,w2)\n");
}

}  // namespace
}  // namespace millrace
