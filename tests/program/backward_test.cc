#include "program/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/block_builder.h"
#include "stub_ops.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// A program with a data variable x [-1, 4], a label, and parameters as needed.
class BackwardTest : public ::testing::Test {
 protected:
  BackwardTest() : registry_(StubOps()) {
    program_.add_blocks();
    Result<BlockBuilder> builder = BlockBuilder::Create(*program_.mutable_blocks(0), registry_);
    builder_ = std::make_unique<BlockBuilder>(std::move(*builder));
    Data("x", {-1, 4}, DType::kFloat32, 0);
    Data("label", {-1, 1}, DType::kInt64, 0);
  }
  void Data(const std::string& name, const Dims& dims, DType dtype, int lod_level) {
    VarMeta meta;
    meta.dims = dims;
    meta.dtype = dtype;
    meta.lod_level = lod_level;
    builder_->Declare(name, meta).set_stop_gradient(true);
  }
  VarDesc& Param(const std::string& name, const Dims& dims) {
    VarMeta meta;
    meta.dims = dims;
    meta.persistable = true;
    VarDesc& var = builder_->Declare(name, meta);
    var.set_is_parameter(true);
    return var;
  }
  void Op(const std::string& type, std::vector<std::pair<std::string, std::vector<std::string>>> inputs,
          const std::string& output, const std::string& var) {
    OpDesc op;
    op.set_type(type);
    for (const auto& [parameter, names] : inputs) SetInput(op, parameter, names);
    SetOutput(op, output, {var});
    const Status status = builder_->Append(std::move(op), OpRole::kForward);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  std::string Backward() {
    const int before = program_.blocks(0).ops_size();
    const Result<std::vector<ParamGrad>> grads = AppendBackward(program_, "loss", registry_, 0);
    if (!grads.ok()) return grads.status().ToString();
    params_.clear();
    for (const ParamGrad& grad : *grads) params_ += grad.param + "=" + grad.grad + " ";
    const auto& ops = program_.blocks(0).ops();
    return Show(std::vector<OpDesc>(ops.begin() + before, ops.end()));
  }

  OpRegistry registry_;
  ProgramDesc program_;
  std::unique_ptr<BlockBuilder> builder_;
  std::string params_;
};

TEST_F(BackwardTest, AStopEndsItBeforeAnythingIsAppended) {
  Param("w", {4, 1});
  Op("mul", {{"X", {"x"}}, {"Y", {"w"}}}, "Out", "y");
  Op("mean", {{"X", {"y"}}}, "Out", "loss");
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = AppendBackward(program_, "loss", registry_, 0, stop.get_token());
  EXPECT_EQ(stopped.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(program_.blocks(0).ops_size(), 2);
  EXPECT_EQ(Backward(),
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=y Out@GRAD=loss@GRAD -> X@GRAD=y@GRAD)\n"
            "mul_grad(X=x Y=w Out@GRAD=y@GRAD -> Y@GRAD=w@GRAD)\n");
}

TEST_F(BackwardTest, WritesTheGradientsOfAChainInReverse) {
  Param("w", {4, 2});
  Param("b", {2});
  Op("mul", {{"X", {"x"}}, {"Y", {"w"}}}, "Out", "xw");
  Op("elementwise_add", {{"X", {"xw"}}, {"Y", {"b"}}}, "Out", "h");
  Op("relu", {{"X", {"h"}}}, "Out", "a");
  Op("cross_entropy", {{"X", {"a"}}, {"Label", {"label"}}}, "Y", "each");
  Op("mean", {{"X", {"each"}}}, "Out", "loss");
  EXPECT_EQ(Backward(),
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=each Out@GRAD=loss@GRAD -> X@GRAD=each@GRAD)\n"
            "cross_entropy_grad(X=a Label=label Y@GRAD=each@GRAD -> X@GRAD=a@GRAD)\n"
            "relu_grad(Out=a Out@GRAD=a@GRAD -> X@GRAD=h@GRAD)\n"
            "elementwise_add_grad(X=xw Y=b Out@GRAD=h@GRAD -> X@GRAD=xw@GRAD Y@GRAD=b@GRAD)\n"
            "mul_grad(X=x Y=w Out@GRAD=xw@GRAD -> Y@GRAD=w@GRAD)\n");
  EXPECT_EQ(params_, "w=w@GRAD b=b@GRAD ");
}

TEST_F(BackwardTest, AddsUpTheGradientsOfAVariableThatIsReadTwice) {
  Param("w", {4, 4});
  Op("mul", {{"X", {"x"}}, {"Y", {"w"}}}, "Out", "h");
  Op("relu", {{"X", {"h"}}}, "Out", "a");
  Op("elementwise_mul", {{"X", {"a"}}, {"Y", {"a"}}}, "Out", "aa");
  Op("elementwise_add", {{"X", {"aa"}}, {"Y", {"a"}}}, "Out", "s");
  Op("mean", {{"X", {"s"}}}, "Out", "loss");
  EXPECT_EQ(Backward(),
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=s Out@GRAD=loss@GRAD -> X@GRAD=s@GRAD)\n"
            "elementwise_add_grad(X=aa Y=a Out@GRAD=s@GRAD -> X@GRAD=aa@GRAD Y@GRAD=a@GRAD@RENAME@block0@0)\n"
            "elementwise_mul_grad(X=a Y=a Out@GRAD=aa@GRAD -> X@GRAD=a@GRAD@RENAME@block0@1 "
            "Y@GRAD=a@GRAD@RENAME@block0@2)\n"
            "sum(X=a@GRAD@RENAME@block0@0,a@GRAD@RENAME@block0@1,a@GRAD@RENAME@block0@2 -> Out=a@GRAD)\n"
            "relu_grad(Out=a Out@GRAD=a@GRAD -> X@GRAD=h@GRAD)\n"
            "mul_grad(X=x Y=w Out@GRAD=h@GRAD -> Y@GRAD=w@GRAD)\n");
}

// As Paddle does it: the parts of a shared table are added up after all other gradients.
TEST_F(BackwardTest, AddsUpASharedTableAtTheEnd) {
  Param("table", {100, 2});
  Data("c1", {-1, 1}, DType::kInt64, 1);
  Data("c2", {-1, 1}, DType::kInt64, 1);
  for (const std::string slot : {"c1", "c2"}) {
    Op("lookup_table", {{"Ids", {slot}}, {"W", {"table"}}}, "Out", slot + ".rows");
    Op("sequence_pool", {{"X", {slot + ".rows"}}}, "Out", slot + ".pool");
  }
  Op("concat", {{"X", {"c1.pool", "x", "c2.pool"}}}, "Out", "all");
  Op("mean", {{"X", {"all"}}}, "Out", "loss");
  EXPECT_EQ(Backward(),
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=all Out@GRAD=loss@GRAD -> X@GRAD=all@GRAD)\n"
            "concat_grad(X=c1.pool,x,c2.pool Out@GRAD=all@GRAD -> X@GRAD=c1.pool@GRAD,@EMPTY@,c2.pool@GRAD)\n"
            "sequence_pool_grad(X=c2.rows Out@GRAD=c2.pool@GRAD -> X@GRAD=c2.rows@GRAD)\n"
            "lookup_table_grad(Ids=c2 W=table Out@GRAD=c2.rows@GRAD -> W@GRAD=table@GRAD@RENAME@block0@0)\n"
            "sequence_pool_grad(X=c1.rows Out@GRAD=c1.pool@GRAD -> X@GRAD=c1.rows@GRAD)\n"
            "lookup_table_grad(Ids=c1 W=table Out@GRAD=c1.rows@GRAD -> W@GRAD=table@GRAD@RENAME@block0@1)\n"
            "sum(X=table@GRAD@RENAME@block0@0,table@GRAD@RENAME@block0@1 -> Out=table@GRAD)\n");
}

TEST_F(BackwardTest, LeavesOutWhatLeadsToNoTrainableParameter) {
  Param("frozen", {4, 4}).set_stop_gradient(true);
  Param("w", {4, 4});
  Op("mul", {{"X", {"x"}}, {"Y", {"frozen"}}}, "Out", "h");
  Op("round", {{"X", {"h"}}}, "Out", "rounded");  // has no gradient and needs none
  Op("mul", {{"X", {"rounded"}}, {"Y", {"w"}}}, "Out", "y");
  Op("relu", {{"X", {"y"}}}, "Out", "unused");
  Op("mean", {{"X", {"y"}}}, "Out", "loss");
  EXPECT_EQ(Backward(),
            "fill_constant(-> Out=loss@GRAD)\n"
            "mean_grad(X=y Out@GRAD=loss@GRAD -> X@GRAD=y@GRAD)\n"
            "mul_grad(X=rounded Y=w Out@GRAD=y@GRAD -> Y@GRAD=w@GRAD)\n");
  EXPECT_EQ(params_, "w=w@GRAD ");
}

TEST_F(BackwardTest, ReportsEveryOperatorWithoutGradient) {
  Param("w", {4, 4});
  Op("mul", {{"X", {"x"}}, {"Y", {"w"}}}, "Out", "h");
  Op("round", {{"X", {"h"}}}, "Out", "r");
  Op("mean", {{"X", {"r"}}}, "Out", "loss");
  EXPECT_EQ(Backward(),
            "invalid configuration: block 0 op[1] round: has no gradient, but the loss depends on it; mark \"r\" "
            "stop_gradient "
            "to leave it out");
}

/// loss = mean(h * h) of h = x w, whose gradient reads h.
class WrittenOverTest : public BackwardTest {
 protected:
  WrittenOverTest() {
    Param("w", {4, 4});
    Op("mul", {{"X", {"x"}}, {"Y", {"w"}}}, "Out", "h");
    Op("elementwise_mul", {{"X", {"h"}}, {"Y", {"h"}}}, "Out", "hh");
  }
};

TEST_F(WrittenOverTest, RefusesAGradientThatWouldReadALaterValue) {
  Op("round", {{"X", {"x"}}}, "Out", "h");
  Op("mean", {{"X", {"hh"}}}, "Out", "loss");
  EXPECT_EQ(Backward(),
            "invalid configuration: block 0 op[1] elementwise_mul: its gradient reads \"h\", which op[2] round writes "
            "over before that; write to another variable there");
}

TEST_F(WrittenOverTest, RefusesAGradientOfTwoValues) {
  Op("round", {{"X", {"x"}}}, "Out", "h");
  Op("elementwise_add", {{"X", {"hh"}}, {"Y", {"h"}}}, "Out", "s");
  Op("mean", {{"X", {"s"}}}, "Out", "loss");
  EXPECT_THAT(Backward(), HasSubstr("block 0 op[2] round: writes \"h\" again, which op[0] made, and the loss has no "
                                    "gradient through both; write to another variable\n"));
}

TEST_F(WrittenOverTest, RefusesAnOperatorThatWritesOverWhatItsGradientReads) {
  Op("round", {{"X", {"x"}}}, "Out", "factor");
  Op("elementwise_mul", {{"X", {"hh"}}, {"Y", {"factor"}}}, "Out", "factor");
  Op("mean", {{"X", {"factor"}}}, "Out", "loss");
  EXPECT_EQ(Backward(),
            "invalid configuration: block 0 op[3] elementwise_mul: its gradient reads \"factor\", which it writes over "
            "itself; write to another variable there");
}

TEST_F(WrittenOverTest, TakesWhatIsWrittenOverWhenItsSizesAloneAreRead) {
  Data("step", {-1, 4}, DType::kFloat32, 0);
  Op("elementwise_add", {{"X", {"hh"}}, {"Y", {"step"}}}, "Out", "s");
  Op("round", {{"X", {"s"}}}, "Out", "step");
  Op("mean", {{"X", {"s"}}}, "Out", "loss");
  EXPECT_THAT(Backward(), HasSubstr("elementwise_add_grad(X=hh Y=step Out@GRAD=s@GRAD -> X@GRAD=hh@GRAD)\n"));
  EXPECT_EQ(params_, "w=w@GRAD ");
}

TEST_F(BackwardTest, ReportsALossThatCannotBeTrained) {
  Op("mean", {{"X", {"x"}}}, "Out", "loss");
  EXPECT_THAT(Backward(), HasSubstr("loss \"loss\" depends on no parameter that can be trained"));
  EXPECT_THAT(AppendBackward(program_, "los", registry_, 0).status().ToString(),
              HasSubstr("there is no variable \"los\"; did you mean \"loss\"?"));
  EXPECT_THAT(AppendBackward(program_, "x", registry_, 0).status().ToString(), HasSubstr("its shape is [-1, 4]"));
  EXPECT_EQ(AppendBackward(program_, "loss", registry_, 1).status().message(),
            "loss \"loss\": there is no block 1; the program has 1");
}

}  // namespace
}  // namespace millrace
