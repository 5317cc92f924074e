#include "ops/op_cases.h"

namespace millrace {
namespace {

using Outputs = std::vector<std::pair<std::string, std::string>>;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

const Outputs kOut = {{"Out", "out"}};

CaseInput X(std::vector<int64_t> shape, Draw draw = Draw::kAny) { return {"X", "x", std::move(shape), draw}; }
CaseInput Y(std::vector<int64_t> shape, Draw draw = Draw::kAny) { return {"Y", "y", std::move(shape), draw}; }
CaseInput Hard(const char* parameter, int64_t classes) {
  return {parameter, "label", {-1, 1}, Draw::kClass, false, classes, false};
}
CaseInput Constant(const char* parameter, std::vector<int64_t> shape, Draw draw) {
  return {parameter, "label", std::move(shape), draw, false, 0, false};
}

void AddUnary(std::vector<OpCase>& cases) {
  for (const char* op : {"sigmoid", "tanh", "square", "softmax", "mean", "squared_l2_norm", "assign", "print"}) {
    const bool print = std::string(op) == "print";
    CaseInput x = X({-1, 3});
    if (print) x.parameter = "In";
    cases.push_back({"", op, {x}, kOut, print ? Attrs{{"first_n", int64_t{0}}} : Attrs{}, {"out"}});
  }
  cases.push_back({"", "relu", {X({-1, 4}, Draw::kOffZero)}, kOut, {}, {"out"}});
  cases.push_back({"", "leaky_relu", {X({-1, 4}, Draw::kOffZero)}, kOut, {{"alpha", 0.1F}}, {"out"}});
  cases.push_back({"", "clip", {X({-1, 4}, Draw::kOffZero)}, kOut, {{"min", -0.05F}, {"max", 3.0F}}, {"out"}});
  cases.push_back({"", "scale", {X({-1, 3})}, kOut, {{"scale", -2.0F}, {"bias", 1.0F}}, {"out"}});
  cases.push_back({"", "cast", {X({-1, 2})}, kOut, {{"in_dtype", int64_t{5}}, {"out_dtype", int64_t{5}}}, {"out"}});
  cases.push_back({"",
                   "dropout",
                   {X({-1, 6})},
                   {{"Out", "out"}, {"Mask", "mask"}},
                   {{"dropout_implementation", std::string("upscale_in_train")}},
                   {"out"}});
  const auto reduce = [&](const char* title, std::vector<int64_t> dim, bool keep, bool all) {
    for (const char* op : {"reduce_sum", "reduce_mean"}) {
      cases.push_back(
          {title, op, {X({-1, 3, 2})}, kOut, {{"dim", dim}, {"keep_dim", keep}, {"reduce_all", all}}, {"out"}});
    }
  };
  reduce("last", {2}, false, false);
  reduce("middle", {1}, true, false);
  reduce("first and last", {0, -1}, false, false);
  reduce("all", {0}, false, true);
  const auto view = [&](const char* op, std::vector<int64_t> shape, const char* attr, std::vector<int64_t> values) {
    cases.push_back(
        {"", op, {X(std::move(shape))}, {{"Out", "out"}, {"XShape", "x_shape"}}, {{attr, values}}, {"out"}});
  };
  view("reshape2", {-1, 6}, "shape", {-1, 2, 3});
  view("unsqueeze2", {-1, 3}, "axes", {1});
  view("squeeze2", {-1, 1, 3}, "axes", {1});
  cases.push_back(
      {"",
       "slice",
       {{"Input", "x", {-1, 5}}},
       kOut,
       {{"axes", std::vector<int64_t>{1}}, {"starts", std::vector<int64_t>{1}}, {"ends", std::vector<int64_t>{-1}}},
       {"out"}});
}

void AddBinary(std::vector<OpCase>& cases) {
  for (const char* op : {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"}) {
    const auto add = [&](const char* title, std::vector<int64_t> x, std::vector<int64_t> y, int64_t axis) {
      cases.push_back(
          {title, op, {X(std::move(x)), Y(std::move(y), Draw::kPositive)}, kOut, {{"axis", axis}}, {"out"}});
    };
    add("same", {-1, 3}, {-1, 3}, -1);
    add("bias", {-1, 3}, {3}, -1);
    add("column", {-1, 3}, {-1, 1}, -1);
    add("column to the left", {-1, 1}, {-1, 3}, -1);
    add("middle", {-1, 2, 3}, {2}, 1);
  }
  cases.push_back({"", "mul", {X({-1, 4}), Y({4, 3})}, kOut, {}, {"out"}});
  cases.push_back({"flattened", "mul", {X({-1, 2, 3}), Y({6, 2})}, kOut, {}, {"out"}});
  for (const bool tx : {false, true}) {
    for (const bool ty : {false, true}) {
      const std::vector<int64_t> x = tx ? std::vector<int64_t>{4, 3} : std::vector<int64_t>{-1, 4};
      const std::vector<int64_t> y = ty ? std::vector<int64_t>{2, 4} : std::vector<int64_t>{4, 2};
      const std::string title = std::string(tx ? "x' " : "x ") + (ty ? "y'" : "y");
      cases.push_back({title, "matmul_v2", {X(x), Y(y)}, kOut, {{"trans_x", tx}, {"trans_y", ty}}, {"out"}});
      cases.push_back(
          {title, "matmul", {X(x), Y(y)}, kOut, {{"transpose_X", tx}, {"transpose_Y", ty}, {"alpha", 0.5F}}, {"out"}});
    }
  }
  cases.push_back({"batches", "matmul_v2", {X({-1, 2, 3}), Y({-1, 3, 2})}, kOut, {}, {"out"}});
  cases.push_back({"shared", "matmul_v2", {X({-1, 2, 3}), Y({3, 2})}, kOut, {}, {"out"}});
  cases.push_back({"", "concat", {{"X", "x0", {-1, 2}}, {"X", "x1", {-1, 3}}}, kOut, {{"axis", int64_t{1}}}, {"out"}});
  cases.push_back({"", "sum", {{"X", "x0", {-1, 2}}, {"X", "x1", {-1, 2}}}, kOut, {}, {"out"}});
  for (const char* act : {"", "relu", "sigmoid", "tanh", "softmax"}) {
    // Away from the kink of relu: positive factors and a bias of either sign that decides.
    const Draw draw = std::string(act) == "relu" ? Draw::kPositive : Draw::kAny;
    cases.push_back({act,
                     "fused_fc",
                     {X({-1, 5}, draw), {"W", "w", {5, 3}, Draw::kOffZero}, {"Bias", "b", {3}, draw}},
                     kOut,
                     {{"activation", std::string(act)}},
                     {"out"}});
  }
}

void AddSequencesAndLosses(std::vector<OpCase>& cases) {
  for (const char* type : {"SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"}) {
    CaseInput x = X({-1, 3}, Draw::kDistinct);
    x.lod = true;
    cases.push_back({type,
                     "sequence_pool",
                     {x},
                     {{"Out", "out"}, {"MaxIndex", "index"}},
                     {{"pooltype", std::string(type)}, {"pad_value", 0.5F}},
                     {"out"}});
  }
  for (const char* op : {"lookup_table", "lookup_table_v2"}) {
    for (const bool sparse : {false, true}) {
      cases.push_back({sparse ? "sparse" : "dense",
                       op,
                       {{"W", "w", {7, 2}}, Hard("Ids", 7)},
                       kOut,
                       {{"is_sparse", sparse}},
                       {"out"}});
    }
  }
  const Outputs y = {{"Y", "y"}};
  cases.push_back({"hard", "cross_entropy", {X({-1, 3}, Draw::kSimplex), Hard("Label", 3)}, y, {}, {"y"}});
  cases.push_back({"soft",
                   "cross_entropy",
                   {X({-1, 3}, Draw::kSimplex), Constant("Label", {-1, 3}, Draw::kSimplex)},
                   y,
                   {{"soft_label", true}},
                   {"y"}});
  cases.push_back({"",
                   "cross_entropy2",
                   {X({-1, 3}, Draw::kSimplex), Hard("Label", 3)},
                   {{"Y", "y"}, {"MatchX", "match"}, {"XShape", "x_shape"}},
                   {},
                   {"y"}});
  const Outputs both = {{"Softmax", "softmax"}, {"Loss", "loss"}};
  cases.push_back(
      {"hard", "softmax_with_cross_entropy", {{"Logits", "x", {-1, 3}}, Hard("Label", 3)}, both, {}, {"loss"}});
  cases.push_back({"soft",
                   "softmax_with_cross_entropy",
                   {{"Logits", "x", {-1, 3}}, Constant("Label", {-1, 3}, Draw::kSimplex)},
                   both,
                   {{"soft_label", true}},
                   {"loss"}});
  cases.push_back({"",
                   "log_loss",
                   {{"Predicted", "x", {-1, 1}, Draw::kPositive}, Constant("Labels", {-1, 1}, Draw::kBinary)},
                   {{"Loss", "loss"}},
                   {{"epsilon", 0.1F}},
                   {"loss"}});
  for (const bool normalize : {false, true}) {
    cases.push_back({normalize ? "normalized" : "",
                     "sigmoid_cross_entropy_with_logits",
                     {X({-1, 1}), Constant("Label", {-1, 1}, Draw::kBinary)},
                     kOut,
                     {{"normalize", normalize}},
                     {"out"}});
  }
  cases.push_back({"", "square_error_cost", {X({-1, 1}), Constant("Y", {-1, 1}, Draw::kAny)}, kOut, {}, {"out"}});
}

}  // namespace

const std::vector<OpCase>& OpCases() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> cases;
    AddUnary(cases);
    AddBinary(cases);
    AddSequencesAndLosses(cases);
    return cases;
  }();
  return all;
}

const std::vector<std::pair<std::string, std::string>>& TestedElsewhere() {
  static const std::vector<std::pair<std::string, std::string>> tests = {
      {"conditional_block", "tests/ops/control_flow_test.cc"},
      {"feed", "tests/ops/small_ops_test.cc"},
      {"fetch", "tests/ops/small_ops_test.cc"},
      {"print", "tests/ops/small_ops_test.cc"},
      {"while", "tests/ops/control_flow_test.cc"},
      {"uniform_random", "tests/ops/random_test.cc"},
      {"gaussian_random", "tests/ops/random_test.cc"},
      {"truncated_gaussian_random", "tests/ops/random_test.cc"},
      {"create_sparse_table", "tests/embedding/op_runner.h"},
      {"sparse_table_push", "tests/embedding/fused_slots_pool_test.cc"},
      {"fused_slots_pool", "tests/embedding/fused_slots_pool_test.cc"},
      {"learning_rate_schedule", "tests/ops/small_ops_test.cc"},
  };
  return tests;
}

}  // namespace millrace
