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
  const auto curved = [&](const char* title, std::vector<int64_t> axes, bool all) {
    cases.push_back({title, "frobenius_norm", {X({-1, 3, 2})}, kOut, {{"dim", axes}, {"reduce_all", all}}, {"out"}});
    cases.push_back({title, "logsumexp", {X({-1, 3, 2})}, kOut, {{"axis", axes}, {"reduce_all", all}}, {"out"}});
  };
  curved("last", {2}, false);
  curved("two", {0, 1}, false);
  curved("all", {0}, true);
  const auto view = [&](const char* op, std::vector<int64_t> shape, const char* attr, std::vector<int64_t> values) {
    cases.push_back(
        {"", op, {X(std::move(shape))}, {{"Out", "out"}, {"XShape", "x_shape"}}, {{attr, values}}, {"out"}});
  };
  view("reshape2", {-1, 6}, "shape", {-1, 2, 3});
  view("unsqueeze2", {-1, 3}, "axes", {1});
  view("squeeze2", {-1, 1, 3}, "axes", {1});
  const auto first = [&](const char* op, std::vector<int64_t> shape, const char* attr, AttrValue value) {
    cases.push_back({"", op, {X(std::move(shape))}, kOut, {{attr, std::move(value)}}, {"out"}});
  };
  first("reshape", {-1, 6}, "shape", std::vector<int64_t>{-1, 2, 3});
  first("unsqueeze", {-1, 3}, "axes", std::vector<int64_t>{1});
  first("squeeze", {-1, 1, 3}, "axes", std::vector<int64_t>{1});
  first("flatten", {-1, 2, 3}, "axis", int64_t{2});
  cases.push_back(
      {"",
       "slice",
       {{"Input", "x", {-1, 5}}},
       kOut,
       {{"axes", std::vector<int64_t>{1}}, {"starts", std::vector<int64_t>{1}}, {"ends", std::vector<int64_t>{-1}}},
       {"out"}});
}

void AddElementary(std::vector<OpCase>& cases) {
  for (const char* op : {"silu", "softsign", "logsigmoid", "exp", "sin", "cos", "gelu", "swish", "softplus"}) {
    cases.push_back({"", op, {X({-1, 3})}, kOut, {}, {"out"}});
  }
  for (const char* op :
       {"tan", "atan", "erf", "expm1", "tanh_shrink", "celu", "stanh", "soft_relu", "mish", "log_softmax"}) {
    cases.push_back({"", op, {X({-1, 3})}, kOut, {}, {"out"}});
  }
  cases.push_back({"first axis", "log_softmax", {X({-1, 3})}, kOut, {{"axis", int64_t{0}}}, {"out"}});
  cases.push_back({"approximate", "gelu", {X({-1, 3})}, kOut, {{"approximate", true}}, {"out"}});
  for (const char* op : {"sqrt", "rsqrt", "log", "log1p", "log2", "log10", "reciprocal"}) {
    cases.push_back({"", op, {X({-1, 3}, Draw::kPositive)}, kOut, {}, {"out"}});
  }
  cases.push_back({"", "pow", {X({-1, 3}, Draw::kPositive)}, kOut, {{"factor", 2.5F}}, {"out"}});
  for (const char* op : {"abs", "elu", "relu6", "hard_sigmoid", "hard_swish", "sign"}) {
    cases.push_back({"", op, {X({-1, 3}, Draw::kOffZero)}, kOut, {}, {"out"}});
  }
  // Thresholds where kOffZero draws nothing: at 0, or beyond.
  cases.push_back({"", "selu", {X({-1, 3}, Draw::kOffZero)}, kOut, {}, {"out"}});
  cases.push_back({"", "hard_shrink", {X({-1, 3}, Draw::kOffZero)}, kOut, {{"threshold", 0.02F}}, {"out"}});
  cases.push_back({"", "softshrink", {X({-1, 3}, Draw::kOffZero)}, kOut, {{"lambda", 0.02F}}, {"out"}});
  cases.push_back({"", "thresholded_relu", {X({-1, 3}, Draw::kOffZero)}, kOut, {{"threshold", 0.02F}}, {"out"}});
  cases.push_back({"", "brelu", {X({-1, 3}, Draw::kOffZero)}, kOut, {{"t_min", 0.02F}}, {"out"}});
  for (const char* mode : {"all", "channel", "element"}) {
    const std::vector<int64_t> slopes =
        std::string(mode) == "all" ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 3};
    cases.push_back({mode,
                     "prelu",
                     {X({-1, 3}, Draw::kOffZero), {"Alpha", "alpha", slopes}},
                     kOut,
                     {{"mode", std::string(mode)}},
                     {"out"}});
  }
  // In these the steps lie on whole numbers, which 0.1 to 0.9 keeps clear of.
  for (const char* op : {"floor", "ceil"}) {
    cases.push_back({"", op, {X({-1, 3}, Draw::kSimplex)}, kOut, {}, {"out"}});
  }
  cases.push_back({"", "round", {X({1, 1}, Draw::kSimplex)}, kOut, {}, {"out"}});
}

void AddEinsum(std::vector<OpCase>& cases) {
  const auto einsum = [&](const char* equation, std::vector<int64_t> x, std::vector<int64_t> y) {
    OpCase c = {equation,
                "einsum",
                {{"Operands", "x", std::move(x)}},
                {{"Out", "out"}, {"InnerCache", "kept_x"}},
                {{"equation", std::string(equation)}},
                {"out"}};
    if (!y.empty()) {
      c.inputs.push_back({"Operands", "y", std::move(y)});
      c.outputs.emplace_back("InnerCache", "kept_y");
    }
    cases.push_back(std::move(c));
  };
  einsum("bi,ij->bj", {-1, 2}, {2, 3});
  einsum("bhid, bhjd -> bhij", {-1, 2, 3, 2}, {-1, 2, 2, 2});
  einsum("bij,kj->bki", {-1, 3, 2}, {4, 2});
  einsum("bij,b->j", {-1, 3, 2}, {-1});
  einsum("...d,de->...e", {-1, 3, 2}, {2, 2});
  einsum("bij->jb", {-1, 3, 2}, {});
  einsum("bi,bi", {-1, 2}, {-1, 2});
}

void AddShapes(std::vector<OpCase>& cases) {
  const Outputs with_shape = {{"Out", "out"}, {"XShape", "x_shape"}};
  const auto ints = [](std::vector<int64_t> values) { return AttrValue(std::move(values)); };
  for (const char* op : {"transpose", "transpose2"}) {
    cases.push_back({"", op, {X({-1, 2, 3})}, with_shape, {{"axis", ints({2, 0, 1})}}, {"out"}});
  }
  cases.push_back({"", "flatten2", {X({-1, 2, 3})}, with_shape, {{"axis", int64_t{2}}}, {"out"}});
  cases.push_back({"",
                   "flatten_contiguous_range",
                   {X({-1, 2, 3})},
                   with_shape,
                   {{"start_axis", int64_t{1}}, {"stop_axis", int64_t{-1}}},
                   {"out"}});
  cases.push_back({"", "expand", {X({-1, 2})}, kOut, {{"expand_times", ints({2, 3})}}, {"out"}});
  cases.push_back({"", "tile", {X({-1, 2})}, kOut, {{"repeat_times", ints({3})}}, {"out"}});
  cases.push_back({"middle", "tile", {X({-1, 2, 2})}, kOut, {{"repeat_times", ints({1, 3, 1})}}, {"out"}});
  cases.push_back({"values", "expand_v2", {X({-1, 2, 1})}, kOut, {{"shape", ints({-1, 2, 3})}}, {"out"}});
  cases.push_back({"", "expand_v2", {X({-1, 1, 2})}, kOut, {{"shape", ints({-1, 3, -1})}}, {"out"}});
  cases.push_back({"", "expand_as_v2", {X({1, 2}), Constant("Y", {-1, 2}, Draw::kAny)}, kOut, {}, {"out"}});
  for (const int64_t axis : {0, 1, -1}) {
    const std::vector<CaseInput> both = {{"X", "x0", {-1, 2}}, {"X", "x1", {-1, 2}}};
    cases.push_back({std::to_string(axis), "stack", both, {{"Y", "y"}}, {{"axis", axis}}, {"y"}});
  }
  cases.push_back({"", "unstack", {X({-1, 2})}, {{"Y", "y0"}, {"Y", "y1"}}, {{"axis", int64_t{1}}}, {"y0", "y1"}});
  cases.push_back({"one", "unstack", {X({-1, 2})}, {{"Y", "y0"}, {"Y", "y1"}}, {{"axis", int64_t{1}}}, {"y1"}});
  cases.push_back({"", "split", {X({-1, 4})}, {{"Out", "y0"}, {"Out", "y1"}}, {{"axis", int64_t{1}}}, {"y0", "y1"}});
  cases.push_back({"sections",
                   "split",
                   {X({-1, 4})},
                   {{"Out", "y0"}, {"Out", "y1"}},
                   {{"axis", int64_t{-1}}, {"sections", ints({1, -1})}},
                   {"y1"}});
}

void AddBinary(std::vector<OpCase>& cases) {
  for (const char* op : {"elementwise_max", "elementwise_min"}) {
    cases.push_back({"", op, {X({-1, 3}, Draw::kOffZero), Y({-1, 3}, Draw::kBinary)}, kOut, {}, {"out"}});
  }
  cases.push_back({"", "elementwise_pow", {X({-1, 3}, Draw::kPositive), Y({3}, Draw::kPositive)}, kOut, {}, {"out"}});
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
  for (const bool tx : {false, true}) {
    for (const bool ty : {false, true}) {
      const std::vector<int64_t> y = ty ? std::vector<int64_t>{5, 3} : std::vector<int64_t>{3, 5};
      const std::vector<int64_t> x = tx ? std::vector<int64_t>{-1, 2, 3, 1} : std::vector<int64_t>{-1, 2, 1, 3};
      const std::string title = std::string("shared, x ") + (tx ? "x'" : "x") + (ty ? " y'" : " y");
      cases.push_back({title, "matmul_v2", {X(x), Y(y)}, kOut, {{"trans_x", tx}, {"trans_y", ty}}, {"out"}});
    }
  }
  cases.push_back({"shared, scaled", "matmul", {X({-1, 2, 3}), Y({3, 4})}, kOut, {{"alpha", -2.0F}}, {"out"}});
  cases.push_back({"shared, a vector", "matmul_v2", {X({-1, 2, 3}), Y({3})}, kOut, {}, {"out"}});
  cases.push_back({"shared X", "matmul_v2", {X({2, 3}), Y({-1, 3, 2})}, kOut, {}, {"out"}});
  cases.push_back({"shared by some", "matmul_v2", {X({-1, 2, 2, 3}), Y({-1, 1, 3, 2})}, kOut, {}, {"out"}});
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
  cases.push_back({"middle axis",
                   "softmax_with_cross_entropy",
                   {{"Logits", "x", {-1, 3, 2}}, {"Label", "label", {-1, 1, 2}, Draw::kClass, false, 3, false}},
                   both,
                   {{"axis", int64_t{1}}},
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
  cases.push_back({"",
                   "teacher_student_sigmoid_loss",
                   {X({-1, 1}, Draw::kOffZero), Constant("Label", {-1, 1}, Draw::kAny)},
                   y,
                   {},
                   {"y"}});
  cases.push_back({"",
                   "hinge_loss",
                   {{"Logits", "x", {-1, 3}, Draw::kSimplex}, Constant("Labels", {-1, 3}, Draw::kBinary)},
                   {{"Loss", "loss"}},
                   {},
                   {"loss"}});
  for (const char* reduction : {"none", "mean", "sum", "batchmean"}) {
    cases.push_back({reduction,
                     "kldiv_loss",
                     {X({-1, 3}), Constant("Target", {-1, 3}, Draw::kAny)},
                     {{"Loss", "loss"}},
                     {{"reduction", std::string(reduction)}},
                     {"loss"}});
  }
  for (const char* reduction : {"none", "mean", "sum"}) {
    cases.push_back({reduction,
                     "nll_loss",
                     {X({-1, 3, 2}),
                      {"Label", "label", {-1, 2}, Draw::kClass, false, 3, false},
                      {"Weight", "weight", {3}, Draw::kPositive, false, 0, false}},
                     {{"Out", "out"}, {"Total_weight", "total"}},
                     {{"reduction", std::string(reduction)}, {"ignore_index", int64_t{1}}},
                     {"out"}});
  }
  cases.push_back({"",
                   "label_smooth",
                   {X({-1, 3}), {"PriorDist", "prior", {1, 3}, Draw::kSimplex, false, 0, false}},
                   kOut,
                   {{"epsilon", 0.2F}},
                   {"out"}});
}

CaseInput Sequences(const char* parameter, const char* name, std::vector<int64_t> shape, uint32_t least = 0) {
  return {parameter, name, std::move(shape), Draw::kAny, true, 0, true, least};
}

void AddSequenceLayouts(std::vector<OpCase>& cases) {
  const Outputs y = {{"Y", "y"}};
  CaseInput lengths_of = Sequences("Y", "y", {-1, 1});
  lengths_of.differentiable = false;
  const CaseInput own = Sequences("Y", "x", {-1, 2});
  cases.push_back({"", "sequence_softmax", {Sequences("X", "x", {-1, 1})}, kOut, {}, {"out"}});
  cases.push_back({"rows", "sequence_expand", {X({-1, 2}), lengths_of}, kOut, {}, {"out"}});
  cases.push_back({"sequences", "sequence_expand", {Sequences("X", "x", {-1, 2}), lengths_of}, kOut, {}, {"out"}});
  cases.push_back({"", "sequence_expand_as", {X({-1, 2}), lengths_of}, kOut, {}, {"out"}});
  cases.push_back(
      {"", "sequence_concat", {Sequences("X", "x0", {-1, 2}), Sequences("X", "x1", {-1, 2})}, kOut, {}, {"out"}});
  cases.push_back({"",
                   "sequence_pad",
                   {Sequences("X", "x", {-1, 2}), Constant("PadValue", {1}, Draw::kAny)},
                   {{"Out", "out"}, {"Length", "length"}},
                   {{"padded_length", int64_t{5}}},
                   {"out"}});
  cases.push_back({"",
                   "sequence_unpad",
                   {X({-1, 4, 2}), {"Length", "label", {-1}, Draw::kClass, false, 5, false}},
                   kOut,
                   {},
                   {"out"}});
  cases.push_back({"", "sequence_reverse", {Sequences("X", "x", {-1, 2})}, y, {}, {"y"}});
  cases.push_back({"",
                   "sequence_slice",
                   {Sequences("X", "x", {-1, 2}, 2),
                    {"Offset", "offset", {-1, 1}, Draw::kClass, false, 2, false},
                    {"Length", "length", {-1, 1}, Draw::kClass, false, 2, false}},
                   kOut,
                   {},
                   {"out"}});
  cases.push_back({"",
                   "sequence_conv",
                   {Sequences("X", "x", {-1, 2}), {"Filter", "filter", {6, 3}}},
                   kOut,
                   {{"contextLength", int64_t{3}}, {"contextStart", int64_t{-1}}},
                   {"out"}});
  cases.push_back({"", "lod_reset", {Sequences("X", "x", {-1, 2}), own}, kOut, {}, {"out"}});
  cases.push_back({"", "sequence_reshape", {Sequences("X", "x", {-1, 4})}, kOut, {{"new_dim", int64_t{2}}}, {"out"}});
}

void AddNormsAndLosses(std::vector<OpCase>& cases) {
  const auto fixed = [](const char* parameter, const char* name, Draw draw) {
    return CaseInput{parameter, name, {2}, draw, false, 0, false};
  };
  for (const bool global : {false, true}) {
    cases.push_back({global ? "running statistics" : "the batch's statistics",
                     "batch_norm",
                     {X({-1, 2}),
                      {"Scale", "scale", {2}},
                      {"Bias", "bias", {2}},
                      fixed("Mean", "mean", Draw::kAny),
                      fixed("Variance", "variance", Draw::kPositive)},
                     {{"Y", "y"},
                      {"MeanOut", "mean"},
                      {"VarianceOut", "variance"},
                      {"SavedMean", "saved_mean"},
                      {"SavedVariance", "saved_variance"}},
                     {{"use_global_stats", global}, {"epsilon", 0.3F}},
                     {"y"}});
  }
  cases.push_back({"",
                   "layer_norm",
                   {X({-1, 4}), {"Scale", "scale", {4}}, {"Bias", "bias", {4}}},
                   {{"Y", "y"}, {"Mean", "mean"}, {"Variance", "variance"}},
                   {{"epsilon", 0.3F}},
                   {"y"}});
  cases.push_back({"",
                   "data_norm",
                   {X({-1, 2}), fixed("BatchSize", "size", Draw::kPositive), fixed("BatchSum", "sum", Draw::kAny),
                    fixed("BatchSquareSum", "squares", Draw::kPositive)},
                   {{"Y", "y"}, {"Means", "means"}, {"Scales", "scales"}},
                   {},
                   {"y"}});
  cases.push_back({"slots",
                   "data_norm",
                   {X({-1, 2}, Draw::kOffZero), fixed("BatchSize", "size", Draw::kPositive),
                    fixed("BatchSum", "sum", Draw::kAny), fixed("BatchSquareSum", "squares", Draw::kPositive)},
                   {{"Y", "y"}, {"Means", "means"}, {"Scales", "scales"}},
                   {{"slot_dim", int64_t{2}}},
                   {"y"}});
  cases.push_back(
      {"", "norm", {X({-1, 3}, Draw::kOffZero)}, {{"Out", "out"}, {"Norm", "norm"}}, {{"epsilon", 0.1F}}, {"out"}});
  for (const float order : {1.0F, 2.0F, 3.0F}) {
    cases.push_back({std::to_string(order),
                     "p_norm",
                     {X({-1, 3}, Draw::kOffZero)},
                     kOut,
                     {{"porder", order}, {"axis", int64_t{1}}, {"keepdim", true}},
                     {"out"}});
    cases.push_back({"all" + std::to_string(order),
                     "p_norm",
                     {X({-1, 3}, Draw::kOffZero)},
                     kOut,
                     {{"porder", order}, {"asvector", true}},
                     {"out"}});
  }
  cases.push_back(
      {"", "conv2d", {{"Input", "x", {-1, 3, 2, 1}}, {"Filter", "w", {2, 3, 1, 1}}}, {{"Output", "out"}}, {}, {"out"}});
  const auto ints = [](std::vector<int64_t> values) { return AttrValue(std::move(values)); };
  cases.push_back({"window",
                   "conv2d",
                   {{"Input", "x", {-1, 3, 4, 5}}, {"Filter", "w", {2, 3, 2, 3}}},
                   {{"Output", "out"}},
                   {{"strides", ints({1, 2})}, {"paddings", ints({1, 0})}, {"dilations", ints({2, 1})}},
                   {"out"}});
  cases.push_back({"channels last",
                   "conv2d",
                   {{"Input", "x", {-1, 4, 5, 3}}, {"Filter", "w", {2, 3, 2, 3}}},
                   {{"Output", "out"}},
                   {{"data_format", std::string("NHWC")}, {"padding_algorithm", std::string("SAME")}},
                   {"out"}});
  cases.push_back({"",
                   "depthwise_conv2d",
                   {{"Input", "x", {-1, 2, 3, 3}}, {"Filter", "w", {4, 1, 2, 2}}},
                   {{"Output", "out"}},
                   {{"groups", int64_t{2}}},
                   {"out"}});
  for (const char* type : {"max", "avg"}) {
    cases.push_back({type,
                     "pool2d",
                     {X({-1, 2, 4, 3}, Draw::kDistinct)},
                     kOut,
                     {{"pooling_type", std::string(type)}, {"ksize", ints({2, 2})}, {"paddings", ints({1, 0})}},
                     {"out"}});
  }
  cases.push_back(
      {"", "bce_loss", {X({-1, 3}, Draw::kSimplex), Constant("Label", {-1, 3}, Draw::kBinary)}, kOut, {}, {"out"}});
  cases.push_back({"",
                   "huber_loss",
                   {X({-1, 2}), Y({-1, 2})},
                   {{"Out", "out"}, {"Residual", "residual"}},
                   {{"delta", 0.7F}},
                   {"out"}});
  cases.push_back({"", "bpr_loss", {X({-1, 3}), Hard("Label", 3)}, {{"Y", "y"}}, {}, {"y"}});
  cases.push_back({"",
                   "rank_loss",
                   {Constant("Label", {-1, 1}, Draw::kBinary), {"Left", "left", {-1, 1}}, {"Right", "right", {-1, 1}}},
                   kOut,
                   {},
                   {"out"}});
}

void AddRecurrent(std::vector<OpCase>& cases) {
  for (const char* mode : {"LSTM", "GRU", "RNN_TANH"}) {
    const bool is_lstm = std::string(mode) == "LSTM";
    const int64_t gates = is_lstm ? 4 : std::string(mode) == "GRU" ? 3 : 1;
    std::vector<CaseInput> inputs = {{"Input", "x", {3, 2, 2}}, {"PreState", "h", {2, 2, 2}}};
    Outputs outputs = {{"Out", "out"}, {"State", "last_h"}};
    if (is_lstm) {
      inputs.push_back({"PreState", "c", {2, 2, 2}});
      outputs.push_back({"State", "last_c"});
    }
    for (const char* weight : {"w0", "w1", "w2", "w3"}) inputs.push_back({"WeightList", weight, {gates * 2, 2}});
    for (const char* bias : {"b0", "b1", "b2", "b3"}) inputs.push_back({"WeightList", bias, {gates * 2}});
    outputs.push_back({"Reserve", "reserve"});
    cases.push_back({mode,
                     "rnn",
                     inputs,
                     outputs,
                     {{"mode", std::string(mode)}, {"hidden_size", int64_t{2}}, {"is_bidirec", true}},
                     {"out", "last_h"}});
  }
}

void AddPicks(std::vector<OpCase>& cases) {
  const auto index = [](int64_t classes) {
    return CaseInput{"Index", "index", {-1, 1}, Draw::kClass, false, classes, false};
  };
  const auto ints = [](std::vector<int64_t> values) { return AttrValue(std::move(values)); };
  cases.push_back({"", "gather", {X({-1, 3}), index(3)}, kOut, {{"axis", int64_t{1}}}, {"out"}});
  cases.push_back({"rows", "gather", {X({5, 2}), index(5)}, kOut, {}, {"out"}});
  cases.push_back({"", "index_select", {X({-1, 3}), index(3)}, kOut, {{"dim", int64_t{1}}}, {"out"}});
  cases.push_back({"", "gather_nd", {X({5, 2}), index(5)}, kOut, {}, {"out"}});
  const CaseInput ids{"Ids", "ids", {-1, 1}, Draw::kClass, false, 9, false};
  const CaseInput updates{"Updates", "updates", {-1, 2}};
  cases.push_back({"rows twice", "scatter", {X({9, 2}), ids, updates}, kOut, {}, {"out"}});
  cases.push_back({"added", "scatter", {X({9, 2}), ids, updates}, kOut, {{"overwrite", false}}, {"out"}});
  cases.push_back({"",
                   "hierarchical_sigmoid",
                   {X({-1, 3}), {"W", "w", {6, 3}}, Hard("Label", 7), {"Bias", "bias", {6, 1}}},
                   {{"Out", "out"}, {"PreOut", "pre"}},
                   {{"num_classes", int64_t{7}}},
                   {"out"}});
  for (const int64_t sampler : {0, 1}) {
    cases.push_back({sampler == 0 ? "uniform" : "log-uniform",
                     "nce",
                     {{"Input", "x", {-1, 3}}, {"Weight", "w", {5, 3}}, Hard("Label", 5), {"Bias", "bias", {5, 1}}},
                     {{"Cost", "out"}, {"SampleLogits", "logits"}, {"SampleLabels", "labels"}},
                     {{"num_total_classes", int64_t{5}}, {"num_neg_samples", int64_t{3}}, {"sampler", sampler}},
                     {"out"}});
  }
  const CaseInput mask{"Mask", "mask", {-1, 3}, Draw::kTruth};
  const CaseInput condition{"Condition", "condition", {-1, 3}, Draw::kTruth};
  cases.push_back({"", "where", {condition, X({-1, 3}), Y({-1, 3})}, kOut, {}, {"out"}});
  cases.push_back({"", "masked_select", {X({-1, 3}), mask}, {{"Y", "y"}}, {}, {"y"}});
  cases.push_back({"", "cumsum", {X({-1, 3})}, kOut, {{"axis", int64_t{1}}}, {"out"}});
  cases.push_back(
      {"back", "cumsum", {X({-1, 3})}, kOut, {{"axis", int64_t{0}}, {"reverse", true}, {"exclusive", true}}, {"out"}});
  cases.push_back({"", "tril_triu", {X({-1, 3, 3})}, kOut, {{"lower", true}, {"diagonal", int64_t{-1}}}, {"out"}});
  cases.push_back(
      {"batches of both sides", "matmul_v2", {X({-1, 1, 3, 2}), Y({1, 2, 3, 2})}, kOut, {{"trans_x", true}}, {"out"}});
  cases.push_back({"", "bmm", {X({-1, 2, 3}), Y({-1, 3, 2})}, kOut, {}, {"out"}});
  cases.push_back({"first axis", "softmax", {X({-1, 3})}, kOut, {{"axis", int64_t{0}}}, {"out"}});
  const Outputs top = {{"Out", "out"}, {"Indices", "indices"}};
  cases.push_back({"", "top_k", {X({-1, 4}, Draw::kDistinct)}, top, {{"k", int64_t{2}}}, {"out"}});
  cases.push_back(
      {"", "top_k_v2", {X({-1, 4}, Draw::kDistinct)}, top, {{"k", int64_t{3}}, {"largest", false}}, {"out"}});
  cases.push_back({"middle",
                   "top_k_v2",
                   {X({-1, 4, 2}, Draw::kDistinct)},
                   top,
                   {{"k", int64_t{2}}, {"axis", int64_t{1}}},
                   {"out"}});
  cases.push_back(
      {"",
       "strided_slice",
       {{"Input", "x", {-1, 5, 4}}},
       kOut,
       {{"axes", ints({1, 2})}, {"starts", ints({0, 3})}, {"ends", ints({5, -1})}, {"strides", ints({2, -2})}},
       {"out"}});
  cases.push_back({"", "l1_norm", {X({-1, 3}, Draw::kOffZero)}, kOut, {}, {"out"}});
  for (const char* op : {"reduce_max", "reduce_min"}) {
    cases.push_back({"", op, {X({-1, 3, 2}, Draw::kDistinct)}, kOut, {{"dim", ints({1})}}, {"out"}});
  }
  cases.push_back({"", "reduce_prod", {X({-1, 3, 2}, Draw::kPositive)}, kOut, {{"dim", ints({1})}}, {"out"}});
  cases.push_back(
      {"", "argsort", {X({-1, 3}, Draw::kDistinct)}, {{"Out", "out"}, {"Indices", "indices"}}, {}, {"out"}});
}

}  // namespace

const std::vector<OpCase>& OpCases() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> cases;
    AddUnary(cases);
    AddElementary(cases);
    AddEinsum(cases);
    AddShapes(cases);
    AddBinary(cases);
    AddSequencesAndLosses(cases);
    AddSequenceLayouts(cases);
    AddNormsAndLosses(cases);
    AddRecurrent(cases);
    AddPicks(cases);
    return cases;
  }();
  return all;
}

const std::vector<std::pair<std::string, std::string>>& TestedElsewhere() {
  static const std::vector<std::pair<std::string, std::string>> tests = {
      {"conditional_block", "tests/ops/control/control_flow_test.cc"},
      {"select_output", "tests/ops/control/control_flow_test.cc"},
      {"create_batch_reader", "tests/ops/reader/reader_ops_test.cc"},
      {"create_double_buffer_reader", "tests/ops/reader/reader_ops_test.cc"},
      {"create_multi_pass_reader", "tests/ops/reader/reader_ops_test.cc"},
      {"create_py_array_reader", "tests/ops/reader/py_array_reader_test.cc"},
      {"create_random_data_generator", "tests/ops/reader/reader_ops_test.cc"},
      {"create_recordio_file_reader", "tests/ops/reader/reader_ops_test.cc"},
      {"create_shuffle_reader", "tests/ops/reader/reader_ops_test.cc"},
      {"gated_recurrence", "tests/model/layer_kinds_test.cc"},
      {"history_window", "tests/model/layer_kinds_test.cc"},
      {"feed", "tests/ops/small_ops_test.cc"},
      {"example_weights", "tests/model/several_tasks_test.cc"},
      {"calibration", "tests/ops/small_ops_test.cc"},
      {"fetch", "tests/ops/small_ops_test.cc"},
      {"has_next", "tests/ops/reader/reader_ops_test.cc"},
      {"open_files", "tests/ops/reader/reader_ops_test.cc"},
      {"print", "tests/ops/small_ops_test.cc"},
      {"read", "tests/ops/reader/reader_ops_test.cc"},
      {"reset", "tests/ops/reader/reader_ops_test.cc"},
      {"while", "tests/ops/control/control_flow_test.cc"},
      {"load", "tests/ops/control/save_load_test.cc"},
      {"load_combine", "tests/ops/control/save_load_test.cc"},
      {"save", "tests/ops/control/save_load_test.cc"},
      {"save_combine", "tests/ops/control/save_load_test.cc"},
      {"uniform_random", "tests/ops/tensor/random_test.cc"},
      {"gaussian_random", "tests/ops/tensor/random_test.cc"},
      {"truncated_gaussian_random", "tests/ops/tensor/random_test.cc"},
      {"create_sparse_table", "tests/ops/embedding/op_runner.h"},
      {"sparse_table_push", "tests/ops/embedding/fused_slots_pool_test.cc"},
      {"fused_slots_pool", "tests/ops/embedding/fused_slots_pool_test.cc"},
      {"learning_rate_schedule", "tests/ops/small_ops_test.cc"},
      {"merge_selected_rows", "tests/ops/small_ops_test.cc"},
      {"get_tensor_from_selected_rows", "tests/ops/small_ops_test.cc"},
      {"cvm", "tests/ops/small_ops_test.cc"},
  };
  return tests;
}

}  // namespace millrace
