#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "batch/label_range_monitor.h"
#include "kernels/row_locks.h"
#include "ops/registry.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

VarMeta Meta(Dims dims, DType type = DType::kFloat32) {
  VarMeta meta;
  meta.dims = dims;
  meta.dtype = type;
  return meta;
}

OpDesc Op(const std::string& type, const std::vector<std::pair<std::string, std::vector<std::string>>>& in,
          const std::vector<std::pair<std::string, std::vector<std::string>>>& out) {
  OpDesc op;
  op.set_type(type);
  for (const auto& [parameter, names] : in) SetInput(op, parameter, names);
  for (const auto& [parameter, names] : out) SetOutput(op, parameter, names);
  return op;
}

void Fill(Tensor* tensor, const Dims& dims, const std::vector<float>& values) {
  std::copy(values.begin(), values.end(), tensor->Resize<float>(dims));
}

std::string CompileError(const OpDesc& op, const VarMetas& inputs) {
  const auto session = OpSession::Create({op}, inputs, AllOps());
  return session.ok() ? "" : session.status().ToString();
}

TEST(SmallOps, FeedAndFetchLeaveVariablesAlone) {
  auto session = OpSession::Create(
      {Op("feed", {{"X", {"feeds"}}}, {{"Out", {"x"}}}), Op("fetch", {{"X", {"x"}}}, {{"Out", {"fetches"}}})},
      {{"x", Meta({2})}, {"feeds", Meta({1})}, {"fetches", Meta({1})}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {2}, {3, 4});
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_EQ((*session)->tensor("x")->data<float>()[1], 4);
}

TEST(SmallOps, CalibrationMapsTheLastColumn) {
  OpDesc line = Op("calibration", {{"X", {"x"}}}, {{"Out", {"line"}}});
  SetAttr(line, "slope", 2.0F);
  SetAttr(line, "intercept", 1.0F);
  OpDesc points = Op("calibration", {{"X", {"x"}}}, {{"Out", {"points"}}});
  SetAttr(points, "points", std::vector<float>{0.25F, 0.75F});
  SetAttr(points, "values", std::vector<float>{0.5F, 1});
  auto session = OpSession::Create({line, points}, {{"x", Meta({-1, 2})}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {3, 2}, {0.9F, 0.1F, 0.5F, 0.5F, 0, 1});
  const Status run = (*session)->Run();
  ASSERT_TRUE(run.ok()) << run.message();
  const float* by_line = (*session)->tensor("line")->data<float>();
  EXPECT_FLOAT_EQ(by_line[0], 1 / (1 + std::exp(-2 * std::log(0.1F / 0.9F) - 1)));
  EXPECT_FLOAT_EQ(by_line[1], 1 / (1 + std::exp(-1.0F)));
  EXPECT_FLOAT_EQ(by_line[2], 1);
  const float* by_points = (*session)->tensor("points")->data<float>();
  EXPECT_THAT(std::vector<float>(by_points, by_points + 3), ElementsAre(0.5F, 0.75F, 1));
  SetAttr(points, "points", std::vector<float>{0.75F, 0.25F});
  EXPECT_THAT(CompileError(points, {{"x", Meta({-1, 2})}}), HasSubstr("points must rise"));
  SetAttr(points, "points", std::vector<float>{0.75F});
  EXPECT_THAT(CompileError(points, {{"x", Meta({-1, 2})}}), HasSubstr("points and values differ in number"));
}

// Paddle 2.6 declares one value [], what we compute from is [1].
TEST(SmallOps, WhereTakesOneValueWithAndWithoutAxes) {
  auto session =
      OpSession::Create({Op("where", {{"Condition", {"c"}}, {"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}})},
                        {{"c", Meta({1}, DType::kBool)}, {"x", Meta({1})}, {"y", Meta(Dims())}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  *(*session)->tensor("c")->Resize<bool>({1}) = false;
  Fill((*session)->tensor("x"), {1}, {3});
  Fill((*session)->tensor("y"), Dims(), {4});
  const Status run = (*session)->Run();
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_EQ((*session)->tensor("out")->data<float>()[0], 4);
  EXPECT_THAT(CompileError(Op("where", {{"Condition", {"c"}}, {"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}}),
                           {{"c", Meta({1}, DType::kBool)}, {"x", Meta({2})}, {"y", Meta(Dims())}}),
              HasSubstr("shapes differ"));
}

// Paddle 2.6 binds W to W_Out, which is a place for gradients of a parameter server. What is written stands elsewhere.
TEST(SmallOps, HierarchicalSigmoidTakesWInTheVariableOfWOut) {
  const VarMetas inputs = {{"x", Meta({2, 3})}, {"w", Meta({1, 3})}, {"label", Meta({2, 1}, DType::kInt64)}};
  const auto tree = [](const std::string& out) {
    return Op("hierarchical_sigmoid", {{"X", {"x"}}, {"W", {"w"}}, {"Label", {"label"}}},
              {{"Out", {out}}, {"PreOut", {"pre"}}, {"W_Out", {"w"}}});
  };
  auto session = OpSession::Create({tree("out")}, inputs, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {2, 3}, {1, 0, 0, 0, 2, 0});
  Fill((*session)->tensor("w"), {1, 3}, {1, -1, 0});
  int64_t* label = (*session)->tensor("label")->Resize<int64_t>({2, 1});
  label[0] = 0;
  label[1] = 1;
  const Status run = (*session)->Run();
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_FLOAT_EQ((*session)->tensor("out")->data<float>()[0], std::log1p(std::exp(1.0F)));
  EXPECT_FLOAT_EQ((*session)->tensor("out")->data<float>()[1], std::log1p(std::exp(2.0F)));
  EXPECT_THAT(CompileError(tree("x"), inputs), HasSubstr("output Out: variable \"x\" is an input of the operator"));
}

// Of a unit that learns no more; with what is left arithmetic is slow.
TEST(SmallOps, MomentsWithoutGradientsEndAtZero) {
  for (const std::string type : {"adam", "lamb"}) {
    const std::vector<std::string> states = {"Moment1", "Moment2", "Beta1Pow", "Beta2Pow"};
    std::vector<std::pair<std::string, std::vector<std::string>>> in = {
        {"Param", {"w"}}, {"Grad", {"g"}}, {"LearningRate", {"lr"}}};
    std::vector<std::pair<std::string, std::vector<std::string>>> out = {{"ParamOut", {"w"}}};
    VarMetas inputs = {{"w", Meta({2})}, {"g", Meta({2})}, {"lr", Meta({1})}};
    for (const std::string& state : states) {
      in.push_back({state, {state}});
      out.push_back({state + "Out", {state}});
      inputs[state] = Meta({state.starts_with("Moment") ? 2 : 1});
    }
    auto session = OpSession::Create({Op(type, in, out)}, inputs, AllOps());
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    Fill((*session)->tensor("w"), {2}, {1, -1});
    Fill((*session)->tensor("g"), {2}, {0, 0.5F});
    Fill((*session)->tensor("lr"), {1}, {0.001F});
    Fill((*session)->tensor("Moment1"), {2}, {1e-30F, 0});
    Fill((*session)->tensor("Moment2"), {2}, {1, 0});
    Fill((*session)->tensor("Beta1Pow"), {1}, {0.9F});
    Fill((*session)->tensor("Beta2Pow"), {1}, {0.999F});
    for (int i = 0; i < 300; ++i) ASSERT_TRUE((*session)->Run().ok());
    EXPECT_EQ((*session)->tensor("Moment1")->data<float>()[0], 0) << type;
    EXPECT_GT((*session)->tensor("Moment1")->data<float>()[1], 0.4F) << type;
  }
}

// paddle.norm(x, p=2) without an axis.
TEST(SmallOps, PNormTakesAllValuesAsAVector) {
  OpDesc norm = Op("p_norm", {{"X", {"x"}}}, {{"Out", {"out"}}});
  SetAttr(norm, "asvector", true);
  SetAttr(norm, "keepdim", true);
  auto session = OpSession::Create({norm}, {{"x", Meta({2, 2})}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {2, 2}, {1, -5, 1, 3});
  const Status run = (*session)->Run();
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_EQ((*session)->tensor("out")->dims(), (Dims{1, 1}));
  EXPECT_FLOAT_EQ((*session)->tensor("out")->data<float>()[0], 6);
}

// A batch whose sequences are all empty.
TEST(SmallOps, TopKGradientOfNoRowsIsEmpty) {
  auto session = OpSession::Create(
      {Op("top_k_grad", {{"X", {"x"}}, {"Indices", {"i"}}, {"Out@GRAD", {"g"}}}, {{"X@GRAD", {"x@GRAD"}}})},
      {{"x", Meta({-1, 4})}, {"i", Meta({-1, 2}, DType::kInt64)}, {"g", Meta({-1, 2})}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  (*session)->tensor("x")->Resize<float>({0, 4});
  (*session)->tensor("i")->Resize<int64_t>({0, 2});
  (*session)->tensor("g")->Resize<float>({0, 2});
  const Status run = (*session)->Run();
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_EQ((*session)->tensor("x@GRAD")->dims(), (Dims{0, 4}));
}

// Their kernels refuse what where takes.
TEST(Mistakes, OfOneValueWithoutAxesBesideOneWithThemAreFoundBeforeARun) {
  EXPECT_THAT(
      CompileError(Op("concat", {{"X", {"a", "b"}}}, {{"Out", {"out"}}}), {{"a", Meta({1})}, {"b", Meta(Dims())}}),
      HasSubstr("inputs differ in more than axis 0: \"a\" [1], \"b\" []"));
  EXPECT_THAT(CompileError(Op("masked_select", {{"X", {"x"}}, {"Mask", {"mask"}}}, {{"Y", {"y"}}}),
                           {{"x", Meta(Dims())}, {"mask", Meta({1}, DType::kBool)}}),
              HasSubstr("shapes differ: X [], Mask [1]"));
}

TEST(SmallOps, SigmoidCrossEntropyCountsPositivesByTheirWeight) {
  auto session =
      OpSession::Create({Op("sigmoid_cross_entropy_with_logits",
                            {{"X", {"x"}}, {"Label", {"label"}}, {"pos_weight", {"w"}}}, {{"Out", {"out"}}})},
                        {{"x", Meta({-1, 1})}, {"label", Meta({-1, 1})}, {"w", Meta({-1, 1})}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {3, 1}, {2, -1, 0});
  Fill((*session)->tensor("label"), {3, 1}, {1, 1, 0});
  Fill((*session)->tensor("w"), {3, 1}, {3, 3, 1});
  ASSERT_TRUE((*session)->Run().ok());
  const float* out = (*session)->tensor("out")->data<float>();
  EXPECT_NEAR(out[0], 3 * 0.126928F, 1e-5F);      // log(1 + exp(-2)), three times
  EXPECT_NEAR(out[1], 1 + 3 * 0.313262F, 1e-5F);  // Paddle's form weighs the curved part alone
  EXPECT_NEAR(out[2], 0.693147F, 1e-5F);
  Fill((*session)->tensor("w"), {1, 1}, {3});
  EXPECT_THAT((*session)->Run().message(), HasSubstr("has another shape"));
}

// In PyTorch likewise.
TEST(SmallOps, NanIsTheExtremeOfALineForBothArgMaxAndArgMin) {
  for (const char* type : {"arg_max", "arg_min"}) {
    OpDesc op = Op(type, {{"X", {"x"}}}, {{"Out", {"out"}}});
    SetAttr(op, "axis", int64_t{-1});
    auto session = OpSession::Create({op}, {{"x", Meta({3, 4})}}, AllOps());
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    const float nan = std::nanf("");
    Fill((*session)->tensor("x"), {3, 4}, {1, -5, nan, 9, nan, 1, nan, 2, -3, 7, 2, nan});
    ASSERT_TRUE((*session)->Run().ok());
    const int64_t* out = (*session)->tensor("out")->data<int64_t>();
    EXPECT_THAT(std::vector<int64_t>(out, out + 3), ElementsAre(2, 0, 3)) << type;
  }
}

TEST(SmallOps, AccuracyOfNanIsNan) {
  auto session = OpSession::Create(
      {Op("accuracy", {{"Out", {"values"}}, {"Indices", {"at"}}, {"Label", {"label"}}},
          {{"Accuracy", {"share"}}, {"Correct", {"correct"}}, {"Total", {"total"}}})},
      {{"values", Meta({2, 1})}, {"at", Meta({2, 1}, DType::kInt64)}, {"label", Meta({2, 1}, DType::kInt64)}},
      AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  for (const char* name : {"at", "label"}) std::fill_n((*session)->tensor(name)->Resize<int64_t>({2, 1}), 2, 1);
  Fill((*session)->tensor("values"), {2, 1}, {0.5F, 0.7F});
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_EQ((*session)->tensor("share")->data<float>()[0], 1);
  Fill((*session)->tensor("values"), {2, 1}, {0.5F, std::nanf("")});
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_TRUE(std::isnan((*session)->tensor("share")->data<float>()[0]));
}

TEST(SmallOps, PrintWritesTheFirstBatchesAndPassesOn) {
  OpDesc op = Op("print", {{"In", {"x"}}}, {{"Out", {"out"}}});
  SetAttr(op, "message", std::string("here:"));
  SetAttr(op, "first_n", int64_t{1});
  SetAttr(op, "summarize", int64_t{2});
  auto session = OpSession::Create({op}, {{"x", Meta({3})}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {3}, {1.5F, -2, 3});
  testing::internal::CaptureStderr();
  ASSERT_TRUE((*session)->Run().ok());
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "here: x float32[3]: 1.5 -2 ...\n");
  EXPECT_EQ((*session)->tensor("out")->data<float>()[2], 3);
}

TEST(SmallOps, ScheduleGivesTheRateOfTheStep) {
  OpDesc op = Op("learning_rate_schedule", {}, {{"Out", {"lr"}}});
  SetAttr(op, "base", 0.5F);
  SetAttr(op, "schedule", std::string("warmup_steps: 2 exponential { decay_steps: 1 decay_rate: 0.5 }"));
  auto session = OpSession::Create({op}, {}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<float> wanted = {0.25F, 0.5F, 0.5F, 0.25F};
  for (size_t step = 0; step < wanted.size(); ++step) {
    ASSERT_TRUE((*session)->Run(static_cast<int64_t>(step)).ok());
    EXPECT_FLOAT_EQ(*(*session)->tensor("lr")->data<float>(), wanted[step]) << step;
  }
}

TEST(SmallOps, DropoutDropsItsShareTheSameWayEachTime) {
  OpDesc op = Op("dropout", {{"X", {"x"}}}, {{"Out", {"out"}}, {"Mask", {"mask"}}});
  SetAttr(op, "dropout_prob", 0.25F);
  auto session = OpSession::Create({op}, {{"x", Meta({-1})}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {10000}, std::vector<float>(10000, 1));
  const auto run = [&](int64_t step) {
    EXPECT_TRUE((*session)->Run(step).ok());
    const float* out = (*session)->tensor("out")->data<float>();
    return std::vector<float>(out, out + 10000);
  };
  const std::vector<float> first = run(0);
  EXPECT_NEAR(static_cast<double>(std::count(first.begin(), first.end(), 0.0F)), 2500, 150);
  EXPECT_NE(run(1), first);
  EXPECT_EQ(run(0), first);
}

TEST(SmallOps, SumOfSparseGradientsKeepsTheirRows) {
  VarMeta rows = Meta({5, 2});
  rows.kind = VarType::SELECTED_ROWS;
  const OpDesc sum = Op("sum", {{"X", {"a", "b"}}}, {{"Out", {"out"}}});
  auto session = OpSession::Create({sum}, {{"a", rows}, {"b", rows}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  for (const char* name : {"a", "b"}) {
    (*session)->rows(name)->rows = {3, 1};
    Fill(&(*session)->rows(name)->values, {2, 2}, {1, 2, 3, 4});
  }
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_THAT((*session)->rows("out")->rows, ElementsAre(3, 1, 3, 1));
  EXPECT_EQ((*session)->rows("out")->values.data<float>()[7], 4);

  const OpDesc onto_b = Op("sum", {{"X", {"a", "b"}}}, {{"Out", {"b"}}});
  EXPECT_THAT(OpSession::Create({onto_b}, {{"a", rows}, {"b", rows}}, AllOps()).status().message(),
              HasSubstr("Out \"b\" is one of the sparse gradients in X"));
  Fill(&(*session)->rows("b")->values, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT((*session)->Run().message(), HasSubstr("sparse gradients of rows of 2 and of 3 values"));

  auto mixed = OpSession::Create({sum}, {{"a", rows}, {"b", Meta({5, 2})}}, AllOps());
  ASSERT_TRUE(mixed.ok()) << mixed.status().ToString();
  (*mixed)->rows("a")->rows = {3, 3};
  Fill(&(*mixed)->rows("a")->values, {2, 2}, {1, 2, 3, 4});
  Fill((*mixed)->tensor("b"), {5, 2}, std::vector<float>(10, 1));
  ASSERT_TRUE((*mixed)->Run().ok());
  EXPECT_EQ((*mixed)->tensor("out")->data<float>()[6], 5);
  EXPECT_EQ((*mixed)->tensor("out")->data<float>()[0], 1);
}

/// Locked updates take other kernels, row by row; the numbers are the same.
TEST(SmallOps, LockedOptimizersAgreeWithPlainOnes) {
  const OpDesc op = Op("adagrad", {{"Param", {"w"}}, {"Grad", {"g"}}, {"Moment", {"m"}}, {"LearningRate", {"lr"}}},
                       {{"ParamOut", {"w"}}, {"MomentOut", {"m"}}});
  const VarMetas metas = {{"w", Meta({3, 2})}, {"g", Meta({3, 2})}, {"m", Meta({3, 2})}, {"lr", Meta({1})}};
  RowLocks locks;
  FrameOptions locked;
  locked.update_mode = UpdateMode::kRowLock;
  locked.row_locks = &locks;
  std::vector<std::vector<float>> results;
  for (const FrameOptions& options : {FrameOptions{}, locked}) {
    auto session = OpSession::Create({op}, metas, AllOps(), options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    Fill((*session)->tensor("w"), {3, 2}, {1, 2, 3, 4, 5, 6});
    Fill((*session)->tensor("g"), {3, 2}, {1, -1, 0.5F, 0, 2, 3});
    Fill((*session)->tensor("m"), {3, 2}, std::vector<float>(6, 0.1F));
    Fill((*session)->tensor("lr"), {1}, {0.1F});
    ASSERT_TRUE((*session)->Run().ok());
    const float* w = (*session)->tensor("w")->data<float>();
    results.emplace_back(w, w + 6);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0][0], 1);
}

TEST(Mistakes, AreFoundWhenTheProgramIsCompiled) {
  EXPECT_THAT(CompileError(Op("mul", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}}),
                           {{"x", Meta({-1, 4})}, {"y", Meta({5, 3})}}),
              HasSubstr(R"(mul (Out: "out"): the columns of X are not the rows of Y: X "x" [-1, 4], Y "y" [5, 3])"));
  EXPECT_THAT(CompileError(Op("elementwise_add", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}}),
                           {{"x", Meta({-1, 4})}, {"y", Meta({3})}}),
              HasSubstr(R"(X "x", Y "y": shapes do not fit: X [-1, 4], Y [3], axis -1)"));
  EXPECT_THAT(CompileError(Op("relu", {{"X", {"x"}}}, {{"Out", {"out"}}}), {{"x", Meta({-1, 1}, DType::kInt64)}}),
              HasSubstr(R"(input X ("x") must be float32, but is int64)"));
  EXPECT_THAT(CompileError(Op("concat", {{"X", {"x", "y"}}}, {{"Out", {"out"}}}),
                           {{"x", Meta({-1, 4})}, {"y", Meta({-1, 1}, DType::kInt64)}}),
              HasSubstr(R"(input X ("y") must be float32, but is int64)"));
  EXPECT_THAT(
      CompileError(Op("sgd", {{"Param", {"w"}}, {"Grad", {"g"}}, {"LearningRate", {"lr"}}}, {{"ParamOut", {"w"}}}),
                   {{"w", Meta({3, 2})}, {"g", Meta({2, 2})}, {"lr", Meta({1})}}),
      HasSubstr(R"(Grad "g" [2, 2] is not of the shape of Param "w" [3, 2])"));
  EXPECT_THAT(CompileError(Op("sequence_pool", {{"X", {"x"}}}, {{"Out", {"out"}}}), {{"x", Meta({-1, 2})}}),
              HasSubstr(R"(input X ("x") has no sequences (lod_level 0))"));
}

OpDesc WithInts(OpDesc op, const std::vector<std::pair<std::string, std::vector<int64_t>>>& lists) {
  for (const auto& [name, values] : lists) SetAttr(op, name, values);
  return op;
}

TEST(Mistakes, OfListsOfAxesAreFoundBeforeARun) {
  const OpDesc slice = Op("slice", {{"Input", {"x"}}}, {{"Out", {"out"}}});
  const VarMetas four = {{"x", Meta({-1, 4})}};
  EXPECT_THAT(
      CompileError(WithInts(slice, {{"axes", {1}}, {"starts", {0}}, {"ends", {4}}, {"decrease_axis", {1}}}), four),
      HasSubstr("decrease_axis 1 is no axis of size 1 of the cut [-1, 4]"));
  EXPECT_THAT(CompileError(WithInts(slice, {{"axes", {1, 1}}, {"starts", {3, -1}}, {"ends", {4, 4}}}), four),
              HasSubstr("axis 1 stands twice in axes"));
  // A null tensor was read.
  EXPECT_THAT(CompileError(WithInts(Op("reshape", {{"X", {"x"}}, {"ShapeTensor", {"@EMPTY@"}}}, {{"Out", {"out"}}}),
                                    {{"shape", {4, -1}}}),
                           four),
              HasSubstr(R"(input ShapeTensor is read, and "@EMPTY@" stands for no variable)"));
  const std::vector<int64_t> nine(9, 1);
  EXPECT_THAT(CompileError(WithInts(Op("fill_constant", {}, {{"Out", {"out"}}}), {{"shape", nine}}), {}),
              HasSubstr("shape has 9 axes; at most 8 are supported"));
  EXPECT_THAT(
      CompileError(WithInts(Op("uniform_random", {}, {{"Out", {"out"}}}), {{"shape", {1LL << 40, 1LL << 40}}}), {}),
      HasSubstr("no machine holds a tensor of"));
  EXPECT_THAT(CompileError(WithInts(Op("reshape2", {{"X", {"x"}}}, {{"Out", {"out"}}}), {{"shape", nine}}), four),
              HasSubstr("9 axes; at most 7 are supported"));
  EXPECT_THAT(CompileError(WithInts(Op("unsqueeze2", {{"X", {"x"}}}, {{"Out", {"out"}}}), {{"axes", nine}}), four),
              HasSubstr("11 axes; at most 7 are supported"));
}

// Sums and products of what an attribute says wrapped around.
TEST(Mistakes, OfNumbersBeyondEverySizeAreFoundBeforeARun) {
  const VarMetas matrix = {{"x", Meta({2, 3})}};
  EXPECT_THAT(
      CompileError(WithInts(Op("expand", {{"X", {"x"}}}, {{"Out", {"out"}}}), {{"expand_times", {1, INT64_MAX}}}),
                   matrix),
      HasSubstr("axis 1 is repeated 9223372036854775807 times"));
  EXPECT_THAT(CompileError(WithInts(Op("split", {{"X", {"x"}}}, {{"Out", {"a", "b"}}}), {{"sections", {2, INT64_MAX}}}),
                           matrix),
              HasSubstr("sections [2, 9223372036854775807] are too many"));
  const VarMetas image = {{"x", Meta({-1, 1, 4, 4})}, {"w", Meta({1, 1, 2, 2})}};
  const OpDesc conv = Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"out"}}});
  EXPECT_THAT(CompileError(WithInts(conv, {{"paddings", {INT64_MAX, INT64_MAX, 0, 0}}}), image),
              HasSubstr("from 0 to 2^30"));
  EXPECT_THAT(CompileError(WithInts(conv, {{"dilations", {INT64_MAX, 1}}}), image), HasSubstr("from 1 to 2^30"));
  OpDesc grouped = conv;
  SetAttr(grouped, "groups", INT64_MAX);
  EXPECT_THAT(CompileError(grouped, {{"x", Meta({-1, 1, 4, 4})}, {"w", Meta({1, 3, 2, 2})}}),
              HasSubstr("must be [images, channels, height, width]"));
}

// Its distance from the diagonal wrapped around.
TEST(SmallOps, ADiagonalBeyondTheMatrixKeepsAllOfItOrNothing) {
  const auto kept = [](int64_t diagonal) {
    OpDesc op = Op("tril_triu", {{"X", {"x"}}}, {{"Out", {"out"}}});
    SetAttr(op, "diagonal", diagonal);
    SetAttr(op, "lower", true);
    auto session = OpSession::Create({op}, {{"x", Meta({3, 2})}}, AllOps());
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    Fill((*session)->tensor("x"), {3, 2}, {1, 2, 3, 4, 5, 6});
    EXPECT_TRUE((*session)->Run().ok());
    const float* out = (*session)->tensor("out")->data<float>();
    return std::vector<float>(out, out + 6);
  };
  EXPECT_THAT(kept(INT64_MAX), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(kept(INT64_MIN), testing::Each(0.0F));
}

TEST(LarsMomentum, TakesTheDecayOfPaddleOneToo) {
  OpDesc op = Op("lars_momentum", {{"Param", {"w"}}, {"Grad", {"g"}}, {"Velocity", {"v"}}, {"LearningRate", {"lr"}}},
                 {{"ParamOut", {"w"}}, {"VelocityOut", {"v"}}});
  SetAttr(op, "lars_coeff", 0.5F);
  const auto trained = [&](const AttrValue& decay) {
    SetAttr(op, "lars_weight_decay", decay);
    auto session =
        OpSession::Create({op}, {{"w", Meta({2})}, {"g", Meta({2})}, {"v", Meta({2})}, {"lr", Meta({1})}}, AllOps());
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    Fill((*session)->tensor("w"), {2}, {3, 4});
    Fill((*session)->tensor("g"), {2}, {0.6F, 0.8F});
    Fill((*session)->tensor("v"), {2}, {0, 0});
    Fill((*session)->tensor("lr"), {1}, {0.1F});
    EXPECT_TRUE((*session)->Run().ok());
    return (*session)->tensor("w")->data<float>()[0];
  };
  // |w| = 5, |g| = 1: the rate is 0.1 * 0.5 * 5 / (1 + 0.2 * 5), and the step along w0 is 0.6 + 0.2 * 3.
  EXPECT_FLOAT_EQ(trained(std::vector<float>{0.2F}), 3 - 0.125F * 1.2F);
  EXPECT_FLOAT_EQ(trained(0.2F), 3 - 0.125F * 1.2F);
}

TEST(ListsFromTensors, AreThoseOfEachBatch) {
  const VarMetas metas = {{"x", Meta({-1, 6})}, {"shape", Meta({3}, DType::kInt32)}, {"end", Meta({1}, DType::kInt64)}};
  auto session =
      OpSession::Create({Op("reshape2", {{"X", {"x"}}, {"Shape", {"shape"}}}, {{"Out", {"out"}}}),
                         WithInts(Op("slice", {{"Input", {"x"}}, {"EndsTensorList", {"end"}}}, {{"Out", {"cut"}}}),
                                  {{"axes", {1}}, {"starts", {0}}, {"ends", {-1}}})},
                        metas, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const auto run = [&](const std::vector<int32_t>& shape, int64_t end) {
    Fill((*session)->tensor("x"), {2, 6}, std::vector<float>(12));
    std::copy(shape.begin(), shape.end(), (*session)->tensor("shape")->Resize<int32_t>({3}));
    *(*session)->tensor("end")->Resize<int64_t>({1}) = end;
    return (*session)->Run().ToString();
  };
  EXPECT_EQ(run({-1, 2, 3}, 4), "ok");
  EXPECT_EQ((*session)->tensor("out")->dims(), (Dims{2, 2, 3}));
  EXPECT_EQ((*session)->tensor("cut")->dims(), (Dims{2, 4}));
  EXPECT_EQ(run({4, 3, 1}, -1), "ok");
  EXPECT_EQ((*session)->tensor("out")->dims(), (Dims{4, 3, 1}));
  EXPECT_EQ((*session)->tensor("cut")->dims(), (Dims{2, 5}));
  EXPECT_THAT(run({5, 5, 5}, 1), HasSubstr(R"(X "x" [2, 6]: 12 values do not fit shape [5, 5, 5])"));
}

TEST(Mistakes, OfListsFromTensorsNameTheInput) {
  const OpDesc fill = Op("fill_constant", {{"ShapeTensor", {"shape"}}}, {{"Out", {"out"}}});
  EXPECT_THAT(CompileError(fill, {{"shape", Meta({2})}}),
              HasSubstr("input ShapeTensor must be int32 or int64, but is float32"));
  EXPECT_THAT(CompileError(fill, {{"shape", Meta({-1}, DType::kInt64)}}),
              HasSubstr("input ShapeTensor is [-1]; it must be known to have from 0 to 8 values"));
  EXPECT_THAT(CompileError(Op("fill_constant", {{"ShapeTensorList", {"shape"}}}, {{"Out", {"out"}}}),
                           {{"shape", Meta({2}, DType::kInt64)}}),
              HasSubstr("tensor 0 of input ShapeTensorList is [2]; it must hold one value"));
  auto session = OpSession::Create({fill}, {{"shape", Meta({2}, DType::kInt64)}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("shape"), {2}, {2, 3});
  EXPECT_THAT((*session)->Run().ToString(), HasSubstr("ShapeTensor holds no whole numbers"));
  int64_t* sizes = (*session)->tensor("shape")->Resize<int64_t>({2});
  sizes[0] = 2;
  sizes[1] = -3;
  EXPECT_THAT((*session)->Run().ToString(), HasSubstr("a size is negative: [2, -3]"));
}

TEST(Mistakes, OfTooManyAxesAreFoundBeforeARun) {
  const Dims eight = {2, 2, 2, 2, 2, 2, 2, 2};
  const std::string nine = "[0, 2, 2, 2, 2, 2, 2, 2, ...]; at most 8 axes are supported";
  EXPECT_THAT(CompileError(Op("cross_entropy2", {{"X", {"x"}}, {"Label", {"label"}}},
                              {{"Y", {"y"}}, {"MatchX", {"m"}}, {"XShape", {"s"}}}),
                           {{"x", Meta(eight)}, {"label", Meta({2, 2, 2, 2, 2, 2, 2, 1}, DType::kInt64)}}),
              HasSubstr("output XShape: variable \"s\" would have the sizes " + nine));
  EXPECT_THAT(CompileError(Op("lookup_table_v2", {{"Ids", {"ids"}}, {"W", {"w"}}}, {{"Out", {"out"}}}),
                           {{"ids", Meta(eight, DType::kInt64)}, {"w", Meta({9, 4})}}),
              HasSubstr("output Out: variable \"out\" would have the sizes [2, 2, 2, 2, 2, 2, 2, 2, ...]"));
  OpDesc mul = Op("mul", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}});
  SetAttr(mul, "x_num_col_dims", int64_t{7});
  SetAttr(mul, "y_num_col_dims", int64_t{1});
  EXPECT_THAT(CompileError(mul, {{"x", Meta(eight)}, {"y", Meta(eight)}}),
              HasSubstr("mul (Out: \"out\"): X: 8 axes; at most 7 are supported"));
}

TEST(Mistakes, OfGradientsWrittenByHandAreFoundBeforeARun) {
  EXPECT_THAT(CompileError(Op("mul_grad", {{"X", {"x"}}, {"Y", {"w"}}, {"Out@GRAD", {"g"}}}, {{"Y@GRAD", {"dw"}}}),
                           {{"x", Meta({-1, 4})}, {"w", Meta({4, 3})}, {"g", Meta({-1, 5})}}),
              HasSubstr(R"(mul_grad: input Out@GRAD ("g") is [-1, 5], but Out of mul is [-1, 3])"));
  EXPECT_THAT(CompileError(WithInts(Op("slice_grad", {{"Input", {"x"}}, {"Out@GRAD", {"g"}}}, {{"Input@GRAD", {"dx"}}}),
                                    {{"axes", {9}}, {"starts", {0}}, {"ends", {1}}}),
                           {{"x", Meta({-1, 4})}, {"g", Meta({-1, 1})}}),
              HasSubstr("slice_grad: slice (Out: \"Out\"): there is no axis 9 in Input \"x\" [-1, 4]"));
}

TEST(Mistakes, OfGradientsWrittenByHandAreFoundInABatch) {
  const auto run = [](const OpDesc& op, const VarMetas& metas, const std::map<std::string, Dims>& sizes) {
    auto session = OpSession::Create({op}, metas, AllOps());
    if (!session.ok()) return session.status().ToString();
    for (const auto& [name, dims] : sizes) {
      Fill((*session)->tensor(name), dims, std::vector<float>(static_cast<size_t>(dims.numel()), 0.5F));
    }
    return (*session)->Run().ToString();
  };
  const Dims rows = {-1, 2};
  const std::string said = R"(input Out@GRAD ("g") is float32 [1, 2]; the forward operator's sizes ask for 6 values)";
  for (const char* type : {"relu_grad", "softmax_grad"}) {
    EXPECT_THAT(run(Op(type, {{"Out", {"out"}}, {"Out@GRAD", {"g"}}}, {{"X@GRAD", {"dx"}}}),
                    {{"out", Meta(rows)}, {"g", Meta(rows)}}, {{"out", {3, 2}}, {"g", {1, 2}}}),
                HasSubstr(said));
  }
  for (const char* type : {"square_grad", "clip_grad", "leaky_relu_grad"}) {
    EXPECT_THAT(run(Op(type, {{"X", {"x"}}, {"Out@GRAD", {"g"}}}, {{"X@GRAD", {"dx"}}}),
                    {{"x", Meta(rows)}, {"g", Meta(rows)}}, {{"x", {3, 2}}, {"g", {1, 2}}}),
                HasSubstr(said));
  }
  EXPECT_THAT(
      run(Op("elementwise_add_grad", {{"X", {"x"}}, {"Y", {"y"}}, {"Out@GRAD", {"g"}}}, {{"X@GRAD", {"dx"}}}),
          {{"x", Meta(rows)}, {"y", Meta(rows)}, {"g", Meta(rows)}}, {{"x", {3, 2}}, {"y", {3, 2}}, {"g", {1, 2}}}),
      HasSubstr(said));
  EXPECT_THAT(run(Op("fused_fc", {{"X", {"x"}}, {"W", {"w"}}}, {{"Out", {"out"}}}),
                  {{"x", Meta({-1, -1})}, {"w", Meta({4, 3})}}, {{"x", {2, 5}}, {"w", {4, 3}}}),
              HasSubstr(R"(the columns of X "x" [2, 5] are not the rows of W "w" [4, 3])"));
}

TEST(Mistakes, OfSizesThatOnlyABatchKnowsAreFoundInIt) {
  const auto run = [](const OpDesc& op, const std::vector<std::pair<Dims, Dims>>& inputs) {
    VarMetas metas;
    for (size_t i = 0; i < inputs.size(); ++i) metas["x" + std::to_string(i)] = Meta(inputs[i].first);
    auto session = OpSession::Create({op}, metas, AllOps());
    if (!session.ok()) return session.status().ToString();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Dims& dims = inputs[i].second;
      Fill((*session)->tensor("x" + std::to_string(i)), dims, std::vector<float>(static_cast<size_t>(dims.numel())));
    }
    return (*session)->Run().ToString();
  };
  EXPECT_THAT(run(WithInts(Op("slice", {{"Input", {"x0"}}}, {{"Out", {"out"}}}), {{"decrease_axis", {1}}}),
                  {{{-1, -1}, {2, 3}}}),
              HasSubstr("not of size 1"));
  EXPECT_THAT(run(Op("concat", {{"X", {"x0", "x1"}}}, {{"Out", {"out"}}}), {{{-1, -1}, {2, 3}}, {{-1, -1}, {2, 4}}}),
              HasSubstr("inputs differ in more than axis 0"));
  EXPECT_THAT(
      run(Op("mul", {{"X", {"x0"}}, {"Y", {"x1"}}}, {{"Out", {"out"}}}), {{{-1, -1}, {2, 3}}, {{4, 2}, {4, 2}}}),
      HasSubstr("mul (Out: \"out\"): shapes do not fit: X [2, 3], Y [4, 2]"));
  OpDesc top_k = Op("top_k", {{"X", {"x0"}}}, {{"Out", {"out"}}, {"Indices", {"at"}}});
  SetAttr(top_k, "k", int64_t{5});
  EXPECT_THAT(run(top_k, {{{-1, -1}, {2, 3}}}), HasSubstr("k = 5 of X [2, 3]"));
}

/// Of two inputs and three hidden values, on tensors of 0.5; `ops` are its operators, which lack the size.
class RnnOnHalves {
 public:
  explicit RnnOnHalves(std::vector<OpDesc> ops) {
    const std::map<std::string, Dims> inputs = {{"x", {2, 4, 2}}, {"h", {1, 4, 3}}, {"wi", {3, 2}},
                                                {"wh", {3, 3}},   {"bi", {3}},      {"bh", {3}}};
    VarMetas metas;
    for (const auto& [name, dims] : inputs) metas[name] = Meta(dims);
    for (OpDesc& op : ops) SetAttr(op, "hidden_size", int64_t{3});
    auto session = OpSession::Create(ops, metas, AllOps());
    status_ = session.status();
    if (!session.ok()) return;
    session_ = std::move(*session);
    for (const auto& [name, dims] : inputs) {
      Fill(tensor(name), dims, std::vector<float>(static_cast<size_t>(dims.numel()), 0.5F));
    }
    status_ = session_->Run();
  }
  static OpDesc Forward(const std::vector<std::string>& states) {
    return Op("rnn", {{"Input", {"x"}}, {"PreState", {"h"}}, {"WeightList", {"wi", "wh", "bi", "bh"}}},
              {{"Out", {"out"}}, {"State", states}, {"Reserve", {"room"}}, {"DropoutState", {"drop"}}});
  }
  std::string message() const { return status_.message(); }
  Tensor* tensor(const std::string& name) { return session_->tensor(name); }

 private:
  std::unique_ptr<OpSession> session_;
  Status status_;
};

// What nothing wrote is refused, and Paddle binds the state of a dropout that is not there.
TEST(Rnn, TheGradientTakesTheDropoutStateThatPaddleBinds) {
  RnnOnHalves rnn({RnnOnHalves::Forward({"last"}), Op("rnn_grad",
                                                      {{"Input", {"x"}},
                                                       {"PreState", {"h"}},
                                                       {"WeightList", {"wi", "wh", "bi", "bh"}},
                                                       {"Reserve", {"room"}},
                                                       {"DropoutState", {"drop"}},
                                                       {"Out", {"out"}},
                                                       {"State", {"last"}},
                                                       {"Out@GRAD", {"out"}}},
                                                      {{"Input@GRAD", {"dx"}}})});
  ASSERT_EQ(rnn.message(), "");
  EXPECT_EQ(rnn.tensor("dx")->dims(), (Dims{2, 4, 2}));
}

// States were written behind the end of those that there are, and into "@EMPTY@".
TEST(Rnn, WritesTheStatesThatItHas) {
  EXPECT_THAT(RnnOnHalves({RnnOnHalves::Forward({"last", "more"})}).message(), HasSubstr("has 2 State for 1 PreState"));
  RnnOnHalves rnn({RnnOnHalves::Forward({"@EMPTY@"})});
  ASSERT_EQ(rnn.message(), "");
  EXPECT_EQ(rnn.tensor("out")->dims(), (Dims{2, 4, 3}));
}

TEST(Mistakes, OffsetsOfOtherRowsAreNotPooled) {
  VarMeta sequences = Meta({-1, 2});
  sequences.lod_level = 1;
  auto session = OpSession::Create({WithInts(Op("reshape2", {{"X", {"x"}}}, {{"Out", {"flat"}}}), {{"shape", {-1, 4}}}),
                                    Op("sequence_pool", {{"X", {"flat"}}}, {{"Out", {"out"}}})},
                                   {{"x", sequences}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {4, 2}, std::vector<float>(8));
  (*session)->SetLod("x", {0, 1, 4});
  EXPECT_THAT((*session)->Run().ToString(), HasSubstr("has no sequences"));
}

TEST(Mistakes, OfAnEinsumGradientWithoutEachOperandAreFoundBeforeARun) {
  OpDesc grad = Op("einsum_grad", {{"InnerCache", {"a"}}, {"Out@GRAD", {"g"}}}, {{"Operands@GRAD", {"da", "db"}}});
  SetAttr(grad, "equation", std::string("bi,bi->b"));
  EXPECT_THAT(CompileError(grad, {{"a", Meta({-1, 2})}, {"g", Meta({-1})}}), HasSubstr("has 2 terms for 1 operands"));
  SetInput(grad, "InnerCache", {});
  EXPECT_THAT(CompileError(grad, {{"g", Meta({-1})}}), HasSubstr("input InnerCache is not bound"));
}

TEST(Mistakes, OfTwoEllipsesInATermAreFoundBeforeARun) {
  const auto said = [](const std::string& equation, const Dims& dims) {
    OpDesc op = Op("einsum", {{"Operands", {"x"}}}, {{"Out", {"out"}}});
    SetAttr(op, "equation", equation);
    return CompileError(op, {{"x", Meta(dims)}});
  };
  for (const Dims& dims : {Dims{2, 3}, Dims{2, 3, 4}, Dims{2, 3, 4, 5, 6}}) {
    EXPECT_THAT(said("......->...", dims), HasSubstr(R"("......" has "..." twice)"));
    EXPECT_THAT(said("...->...i...", dims), HasSubstr(R"("...i..." has "..." twice)"));
    EXPECT_EQ(said("...->...", dims), "");
  }
}

TEST(Mistakes, OfOffsetsNameTheirSourceAndTheFirstThatIsWrong) {
  const auto told = [](const std::vector<int64_t>& offsets) {
    const OpDesc op = WithInts(Op("lod_reset", {{"X", {"e"}}}, {{"Out", {"out"}}}), {{"target_lod", offsets}});
    auto session = OpSession::Create({op}, {{"e", Meta({-1, 2})}}, AllOps());
    if (!session.ok()) return "compile: " + session.status().ToString();
    Fill((*session)->tensor("e"), {3, 2}, std::vector<float>(6));
    return (*session)->Run().ToString();
  };
  EXPECT_THAT(told({0, 2, 40}), HasSubstr(R"(the sequences of target_lod end at 40, but "e" [3, 2] has 3 rows)"));
  EXPECT_THAT(told({0, 2}), HasSubstr(R"(the sequences of target_lod end at 2, but "e" [3, 2] has 3 rows)"));
  EXPECT_THAT(told({1, 3}), AllOf(HasSubstr("compile: "), HasSubstr("target_lod: offset 0 is 1; it must be 0")));
  EXPECT_THAT(told({0, 2, 1, 3}),
              AllOf(HasSubstr("compile: "),
                    HasSubstr("target_lod: offset 2 is 1; it must not be less than the one before it, 2")));

  const auto of_y = [](const std::vector<int>& offsets) {
    auto session = OpSession::Create({Op("lod_reset", {{"X", {"e"}}, {"Y", {"at"}}}, {{"Out", {"out"}}})},
                                     {{"e", Meta({-1, 2})}, {"at", Meta({-1}, DType::kInt32)}}, AllOps());
    if (!session.ok()) return session.status().ToString();
    Fill((*session)->tensor("e"), {3, 2}, std::vector<float>(6));
    std::copy(offsets.begin(), offsets.end(),
              (*session)->tensor("at")->Resize<int32_t>({static_cast<int64_t>(offsets.size())}));
    return (*session)->Run().ToString();
  };
  EXPECT_THAT(of_y({0, 4, 2, 3}), HasSubstr(R"(Y "at": offset 2 is 2; it must not be less than the one before it, 4)"));
  EXPECT_THAT(of_y({-1, 3}), HasSubstr(R"(Y "at": offset 0 is -1; it must be 0)"));
  EXPECT_THAT(of_y({0}), HasSubstr(R"(Y "at": must have two offsets or more, from 0 to the number of rows; it has 1)"));
  EXPECT_THAT(of_y({0, 40}), HasSubstr(R"(the sequences of Y "at" end at 40, but "e" [3, 2] has 3 rows)"));
  EXPECT_EQ(of_y({0, 2, 3}), Status::Ok().ToString());
}

TEST(Mistakes, OfABatchNameTheRow) {
  const OpDesc op = Op("cross_entropy", {{"X", {"x"}}, {"Label", {"label"}}}, {{"Y", {"y"}}});
  auto session = OpSession::Create({op}, {{"x", Meta({-1, 2})}, {"label", Meta({-1, 1}, DType::kInt64)}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {2, 2}, {0.5F, 0.5F, 0.5F, 0.5F});
  int64_t* label = (*session)->tensor("label")->Resize<int64_t>({2, 1});
  label[0] = 1;
  label[1] = 7;
  const Status status = (*session)->Run();
  EXPECT_EQ(status.code(), StatusCode::kBadData);
  EXPECT_THAT(status.message(), HasSubstr(R"(label "label" of row 1 of the batch is not a class from 0 to 1: 7)"));
}

// It counted as the label to leave out, and the value before the row's first was read.
TEST(Mistakes, OfALabelBelowZeroAreFoundByBprLoss) {
  const OpDesc op = Op("bpr_loss", {{"X", {"x"}}, {"Label", {"label"}}}, {{"Y", {"y"}}});
  auto session = OpSession::Create({op}, {{"x", Meta({-1, 2})}, {"label", Meta({-1, 1}, DType::kInt64)}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {1, 2}, {0.5F, 0.5F});
  *(*session)->tensor("label")->Resize<int64_t>({1, 1}) = -1;
  EXPECT_THAT((*session)->Run().message(), HasSubstr("is not a class from 0 to 1: -1"));
}

// The greatest of no logits was read.
TEST(Mistakes, OfLogitsWithoutClassesAreFoundInABatch) {
  const OpDesc op = Op("softmax_with_cross_entropy", {{"Logits", {"x"}}, {"Label", {"label"}}},
                       {{"Softmax", {"softmax"}}, {"Loss", {"loss"}}});
  VarMetas metas = {{"x", Meta({-1, -1})}, {"label", Meta({-1, 1}, DType::kInt64)}};
  auto session = OpSession::Create({op}, metas, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  (*session)->tensor("x")->Resize<float>({1, 0});
  *(*session)->tensor("label")->Resize<int64_t>({1, 1}) = -100;
  EXPECT_THAT((*session)->Run().message(), HasSubstr("Logits [1, 0] have no classes"));
}

SelectedRows* FillRows(SelectedRows* rows, int64_t height, std::vector<uint64_t> numbers,
                       const std::vector<float>& values) {
  rows->height = height;
  rows->rows = std::move(numbers);
  rows->merged = false;
  Fill(&rows->values,
       {static_cast<int64_t>(rows->rows.size()), static_cast<int64_t>(values.size() / rows->rows.size())}, values);
  return rows;
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

/// What clipping by the global norm does to a sparse gradient.
TEST(SparseGradients, AreMergedMeasuredAndScaled) {
  VarMetas inputs = {{"g", Meta({4, 2})}, {"factor", Meta({1})}};
  inputs["g"].kind = VarType::SELECTED_ROWS;
  OpDesc norm = Op("p_norm", {{"X", {"values"}}}, {{"Out", {"norm"}}});
  SetAttr(norm, "porder", 2.0F);
  SetAttr(norm, "asvector", true);
  auto session = OpSession::Create({Op("merge_selected_rows", {{"X", {"g"}}}, {{"Out", {"merged"}}}),
                                    Op("get_tensor_from_selected_rows", {{"X", {"merged"}}}, {{"Out", {"values"}}}),
                                    norm, Op("elementwise_mul", {{"X", {"g"}}, {"Y", {"factor"}}}, {{"Out", {"g"}}})},
                                   inputs, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  SelectedRows* const none = (*session)->rows("g");
  none->height = 4;
  none->rows.clear();
  Fill(&none->values, {0, 2}, {});
  Fill((*session)->tensor("factor"), {1}, {0.5F});
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_THAT(FloatsOf(*(*session)->tensor("norm")), ElementsAre(0)) << "of a batch that uses no row";
  FillRows((*session)->rows("g"), 4, {3}, {3e25F, 4e25F});
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_THAT(FloatsOf(*(*session)->tensor("norm")), ElementsAre(testing::FloatEq(5e25F))) << "its square is infinite";
  FillRows((*session)->rows("g"), 4, {3, 1, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_THAT((*session)->rows("merged")->rows, ElementsAre(3, 1));
  EXPECT_THAT(FloatsOf(*(*session)->tensor("values")), ElementsAre(6, 8, 3, 4));
  EXPECT_THAT(FloatsOf(*(*session)->tensor("norm")), ElementsAre(testing::FloatEq(std::sqrt(125.0F))));
  EXPECT_THAT((*session)->rows("g")->rows, ElementsAre(3, 1, 3));
  EXPECT_THAT(FloatsOf((*session)->rows("g")->values), ElementsAre(0.5F, 1, 1.5F, 2, 2.5F, 3));
}

TEST(SparseGradients, AreClipped) {
  OpDesc clip = Op("clip", {{"X", {"g"}}}, {{"Out", {"clipped"}}});
  SetAttr(clip, "min", -3.0F);
  SetAttr(clip, "max", 5.0F);
  OpDesc by_norm = Op("clip_by_norm", {{"X", {"g"}}}, {{"Out", {"short"}}});
  SetAttr(by_norm, "max_norm", 5.0F);
  VarMetas inputs = {{"g", Meta({4, 1})}};
  inputs["g"].kind = VarType::SELECTED_ROWS;
  auto session = OpSession::Create({clip, by_norm}, inputs, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  FillRows((*session)->rows("g"), 4, {2, 0, 2}, {4, -6, 4});
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_THAT((*session)->rows("clipped")->rows, ElementsAre(2, 0));
  EXPECT_THAT(FloatsOf((*session)->rows("clipped")->values), ElementsAre(5, -3));
  EXPECT_THAT(FloatsOf((*session)->rows("short")->values), ElementsAre(4, -3));
}

/// The first two columns are counts, not features: their "gradient" is what a table adds to them.
TEST(Cvm, GradientCarriesTheCounts) {
  for (const bool use : {true, false}) {
    OpDesc grad = Op("cvm_grad", {{"X", {"x"}}, {"CVM", {"counts"}}, {"Y@GRAD", {"y@GRAD"}}}, {{"X@GRAD", {"x@GRAD"}}});
    SetAttr(grad, "use_cvm", use);
    const int64_t width = use ? 3 : 1;
    auto session = OpSession::Create(
        {grad}, {{"x", Meta({2, 3})}, {"counts", Meta({2, 2})}, {"y@GRAD", Meta({2, width})}}, AllOps());
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    Fill((*session)->tensor("x"), {2, 3}, {1, 0, 5, 2, 1, 6});
    Fill((*session)->tensor("counts"), {2, 2}, {1, 0, 2, 1});
    Fill((*session)->tensor("y@GRAD"), {2, width},
         use ? std::vector<float>{9, 9, 7, 9, 9, 8} : std::vector<float>{7, 8});
    ASSERT_TRUE((*session)->Run().ok());
    EXPECT_THAT(FloatsOf(*(*session)->tensor("x@GRAD")), ElementsAre(1, 0, 7, 2, 1, 8));
  }
}

// Rows that lookup_table_v2 gives: with an axis of 1 in sequences, or several of each example.
TEST(Cvm, GradientOfRowsWithMoreAxesHasTheCountsOfTheirExample) {
  OpDesc grad = Op("cvm_grad", {{"X", {"x"}}, {"CVM", {"counts"}}, {"Y@GRAD", {"y@GRAD"}}}, {{"X@GRAD", {"x@GRAD"}}});
  SetAttr(grad, "use_cvm", false);
  const std::vector<uint32_t> lod = {0, 3, 4};
  for (const bool in_sequences : {false, true}) {
    const Dims dims = in_sequences ? Dims{4, 1, 3} : Dims{2, 2, 3};
    auto session = OpSession::Create(
        {grad}, {{"x", Meta(dims)}, {"counts", Meta({2, 2})}, {"y@GRAD", Meta({dims[0], dims[1], 1})}}, AllOps());
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    Fill((*session)->tensor("x"), dims, std::vector<float>(12, 0));
    if (in_sequences) (*session)->tensor("x")->set_lod(lod);
    Fill((*session)->tensor("counts"), {2, 2}, {1, 0, 2, 1});
    Fill((*session)->tensor("y@GRAD"), {dims[0], dims[1], 1}, {5, 6, 7, 8});
    ASSERT_TRUE((*session)->Run().ok());
    const float third = in_sequences ? 1 : 2;
    EXPECT_THAT(FloatsOf(*(*session)->tensor("x@GRAD")), ElementsAre(1, 0, 5, 1, 0, 6, third, third - 1, 7, 2, 1, 8));
  }
}

TEST(Cvm, SlotsSideBySideEachHaveTheirCounts) {
  OpDesc cvm = Op("cvm", {{"X", {"x"}}, {"CVM", {"counts"}}}, {{"Y", {"y"}}});
  OpDesc grad = Op("cvm_grad", {{"X", {"x"}}, {"CVM", {"counts"}}, {"Y@GRAD", {"y@GRAD"}}}, {{"X@GRAD", {"x@GRAD"}}});
  for (OpDesc* op : {&cvm, &grad}) {
    SetAttr(*op, "use_cvm", false);
    SetAttr(*op, "slots", int64_t{2});
  }
  auto session = OpSession::Create({cvm, grad},
                                   {{"x", Meta({2, 6})}, {"counts", Meta({2, 2})}, {"y@GRAD", Meta({2, 2})}}, AllOps());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Fill((*session)->tensor("x"), {2, 6}, {1, 0, 5, 2, 1, 6, 3, 0, 7, 4, 1, 8});
  Fill((*session)->tensor("counts"), {2, 2}, {1, 0, 2, 1});
  Fill((*session)->tensor("y@GRAD"), {2, 2}, {10, 20, 30, 40});
  ASSERT_TRUE((*session)->Run().ok());
  EXPECT_THAT(FloatsOf(*(*session)->tensor("y")), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(FloatsOf(*(*session)->tensor("x@GRAD")), ElementsAre(1, 0, 10, 1, 0, 20, 2, 1, 30, 2, 1, 40));
}

TEST(Cvm, CountsAreForTheGradientAlone) {
  OpDesc cvm = Op("cvm", {{"X", {"x"}}}, {{"Y", {"y"}}});
  SetAttr(cvm, "slots", int64_t{2});
  EXPECT_TRUE(OpSession::Create({cvm}, {{"x", Meta({-1, 6})}}, AllOps()).ok());
  const OpDesc grad = Op("cvm_grad", {{"X", {"x"}}, {"Y@GRAD", {"y@GRAD"}}}, {{"X@GRAD", {"x@GRAD"}}});
  const auto without = OpSession::Create({grad}, {{"x", Meta({2, 3})}, {"y@GRAD", Meta({2, 3})}}, AllOps());
  EXPECT_THAT(without.status().message(), HasSubstr("input CVM is not bound"));
  const auto narrow = OpSession::Create({cvm}, {{"x", Meta({-1, 5})}}, AllOps());
  EXPECT_THAT(narrow.status().message(), HasSubstr("must be embeddings of 2 slots side by side"));
}

TEST(Attributes, UnknownOnesAndOtherValuesAreNamedTogether) {
  OpDesc sums = Op("cumsum", {{"X", {"x"}}}, {{"Out", {"sums"}}});
  SetAttr(sums, "flatten", true);
  SetAttr(sums, "axes", int64_t{1});
  SetAttr(sums, "use_mkldnn", true);
  const auto session = OpSession::Create({sums}, {{"x", Meta({2, 3})}}, AllOps());
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.status().message(),
              HasSubstr("block 0 op[0] cumsum: attribute \"flatten\" is true; only false is supported"));
  EXPECT_THAT(session.status().message(), HasSubstr("attribute \"axes\" is not supported; did you mean \"axis\"?"));
  EXPECT_EQ(session.status().message().find("use_mkldnn"), std::string::npos);
}

// NaN is neither below nor above anything: a sort that compares with < alone walks out of its array.
TEST(SmallOps, SortsAndTakesNanAsTheLargestValue) {
  const float nan = std::nanf("");
  std::vector<float> values(100, nan);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = static_cast<float>((7 * i) % 50) - 20;
  for (const bool largest_first : {false, true}) {
    OpDesc argsort = Op("argsort", {{"X", {"x"}}}, {{"Out", {"out"}}, {"Indices", {"at"}}});
    SetAttr(argsort, "descending", largest_first);
    OpDesc top_k = Op("top_k_v2", {{"X", {"x"}}}, {{"Out", {"top"}}, {"Indices", {"top_at"}}});
    SetAttr(top_k, "k", int64_t{80});
    SetAttr(top_k, "largest", largest_first);
    auto session = OpSession::Create({argsort, top_k}, {{"x", Meta({1, 100})}}, AllOps());
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    Fill((*session)->tensor("x"), {1, 100}, values);
    ASSERT_TRUE((*session)->Run().ok());
    std::vector<int64_t> expected(values.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
      const auto key = [&](int64_t i) {
        const float value = values[static_cast<size_t>(i)];
        return std::isnan(value) ? 1000.0F : value;
      };
      return largest_first ? key(a) > key(b) : key(a) < key(b);
    });
    const int64_t* at = (*session)->tensor("at")->data<int64_t>();
    const int64_t* top = (*session)->tensor("top_at")->data<int64_t>();
    EXPECT_EQ(std::vector<int64_t>(at, at + 100), expected);
    EXPECT_EQ(std::vector<int64_t>(top, top + 80), std::vector<int64_t>(expected.begin(), expected.begin() + 80));
  }
}

TEST(LabelRange, OfLossesOfSharesIsLookedAtAndIgnoredLabelsAreLeftAlone) {
  struct Case {
    const char* type;
    const char* x;
    const char* label;
    const char* out;
  };
  for (const Case& c : {Case{"sigmoid_cross_entropy_with_logits", "X", "Label", "Out"},
                        Case{"log_loss", "Predicted", "Labels", "Loss"}, Case{"bce_loss", "X", "Label", "Out"}}) {
    LabelRangeMonitor refusing(std::vector<std::string>{"click"});
    LabelRangeMonitor counting;
    for (LabelRangeMonitor* odd : {&refusing, &counting}) {
      FrameOptions options;
      options.label_monitor = odd;
      auto session = OpSession::Create({Op(c.type, {{c.x, {"x"}}, {c.label, {"y"}}}, {{c.out, {"out"}}})},
                                       {{"x", Meta({4, 1})}, {"y", Meta({4, 1})}}, AllOps(), options);
      ASSERT_TRUE(session.ok()) << session.status().ToString();
      Fill((*session)->tensor("x"), {4, 1}, {0.5F, 0.25F, 0.5F, 0.5F});
      Fill((*session)->tensor("y"), {4, 1}, {0, 1, 0.5F, 0.25F});
      EXPECT_TRUE((*session)->Run().ok()) << c.type;
      EXPECT_EQ(odd->of_losses().count, 0);
      Fill((*session)->tensor("y"), {4, 1}, {0, 1, -0.5F, std::nanf("")});
      const Status status = (*session)->Run(6);
      EXPECT_EQ(status.ok(), odd == &counting) << c.type;
      if (odd == &refusing) {
        EXPECT_THAT(status.message(), HasSubstr("label \"click\" of row 2 of the batch, batch 7, is -0.5")) << c.type;
      } else {
        EXPECT_EQ(odd->of_losses().count, 2);
        EXPECT_THAT(odd->of_losses().first, HasSubstr("label \"y\" of row 2 of the batch, batch 7, is -0.5")) << c.type;
      }
      Fill((*session)->tensor("y"), {4, 1}, {0, -100, 1, -100});
      const bool ignores = std::string_view(c.type).starts_with("sigmoid");
      EXPECT_EQ((*session)->Run().ok(), ignores || odd == &counting) << c.type;
      if (odd == &counting) {
        EXPECT_EQ(odd->of_losses().count, ignores ? 2 : 4) << c.type;
      }
    }
  }
}

}  // namespace
}  // namespace millrace
