#include "serving/onnx_ops.h"

#include <algorithm>
#include <map>

#include "kernels/calibration.h"

namespace millrace {
namespace {

using OpTranslator = Status (*)(const OpView&, OnnxGraph&);

/// The single variable of an input.
std::string In(const OpView& op, std::string_view parameter) { return InputArguments(op.desc(), parameter).at(0); }

/// Sets Out with the LoD of input X.
Status Done(const OpView& op, OnnxGraph& graph, const std::string& value) {
  graph.SetOutput(op.desc(), "Out", value, In(op, "X"));
  return Status::Ok();
}

/// Sets Out without LoD.
Status DoneFlat(const OpView& op, OnnxGraph& graph, const std::string& value) {
  graph.SetOutput(op.desc(), "Out", value, "");
  return Status::Ok();
}

Status Refuse(const OpView& op, const std::string& why) {
  return InvalidConfig(op.type() + " (" + OutputArguments(op.desc(), "Out").at(0) + "): " + why);
}

Status Lookup(const OpView& op, OnnxGraph& graph) {
  const std::string ids = graph.Value(In(op, "Ids"));
  const std::string w = In(op, "W");
  std::string index = ids;
  if (op.type() == "lookup_table") index = graph.Add("Squeeze", {ids, graph.Ints({-1})});
  std::string rows = graph.Add("Gather", {graph.Value(w), index}, {{"axis", int64_t{0}}});
  if (const int64_t padding = op.Int("padding_idx"); padding >= 0) {
    std::string is_padding = graph.Add("Equal", {index, graph.Int(padding)});
    is_padding = graph.Add("Unsqueeze", {is_padding, graph.Ints({-1})});
    rows = graph.Add("Where", {is_padding, graph.Number(0, w), rows});
  }
  graph.SetOutput(op.desc(), "Out", rows, In(op, "Ids"));
  return Status::Ok();
}

/// The rows of a slot: first and last offsets, lengths, and the row of each value.
struct RowsOf {
  std::string begins;
  std::string ends;
  std::string lengths;
  std::string row_of_value;  ///< [values, 1]
};

RowsOf FindRows(OnnxGraph& graph, const std::string& slot, const std::string& values) {
  const std::string lod = slot + ".lod";
  const std::string first = graph.Ints({0});
  const std::string second = graph.Ints({1});
  const std::string last = graph.Ints({-1});
  const std::string end = graph.Ints({INT64_MAX});
  RowsOf rows;
  rows.begins = graph.Add("Slice", {lod, first, last});
  rows.ends = graph.Add("Slice", {lod, second, end});
  rows.lengths = graph.Add("Sub", {rows.ends, rows.begins});
  // Marks the start of each row except the first with 1 (more after empty rows) and takes the running sum; the extra
  // position after the last value receives the marks of trailing empty rows.
  const std::string count = graph.Add("Slice", {graph.Add("Shape", {values}), first, second});
  const std::string places = graph.Add("Add", {count, second});
  const std::string zeros = graph.Add("Expand", {first, places});
  const std::string inner = graph.Add("Slice", {lod, second, last});
  const std::string ones = graph.Add("Expand", {second, graph.Add("Shape", {inner})});
  const std::string marks =
      graph.Add("ScatterElements", {zeros, inner, ones}, {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  const std::string sums = graph.Add("CumSum", {marks, graph.Int(0)});
  rows.row_of_value = graph.Add("Unsqueeze", {graph.Add("Slice", {sums, first, last}), last});
  return rows;
}

/// Adds trailing axes of size 1 to a [rows] value to combine it with a [rows, ...] value of `rank` axes.
std::string Widened(OnnxGraph& graph, const std::string& value, int rank) {
  std::vector<int64_t> axes;
  for (int axis = 1; axis < rank; ++axis) axes.push_back(axis);
  return axes.empty() ? value : graph.Add("Unsqueeze", {value, graph.Ints(axes)});
}

Status SequencePool(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  const std::string slot = graph.LodOf(x);
  if (slot.empty()) return Refuse(op, "input X has no LoD of a slot");
  const std::string values = graph.Value(x);
  const RowsOf rows = FindRows(graph, slot, values);
  const int rank = graph.Meta(x).dims.rank();
  const std::string pool = op.String("pooltype");
  const auto scattered = [&](double start, const char* reduction) {
    const std::string rest =
        graph.Add("Slice", {graph.Add("Shape", {values}), graph.Ints({1}), graph.Ints({INT64_MAX})});
    const std::string shape = graph.Add("Concat", {graph.Add("Shape", {rows.begins}), rest}, {{"axis", int64_t{0}}});
    const std::string empty = graph.Add("Expand", {graph.Number(start, x), shape});
    return graph.Add("ScatterND", {empty, rows.row_of_value, values}, {{"reduction", std::string(reduction)}});
  };
  std::string out;
  if (pool == "SUM" || pool == "AVERAGE" || pool == "SQRT") {
    out = scattered(0, "add");
    if (pool != "SUM") {
      // An empty row's sum is zero for any divisor.
      const std::string some = graph.Add("Max", {rows.lengths, graph.Int(1)});
      std::string by = graph.Add("Cast", {Widened(graph, some, rank)}, {{"to", int64_t{onnx::FLOAT}}});
      if (pool == "SQRT") by = graph.Add("Sqrt", {by});
      out = graph.Add("Div", {out, by});
    }
  } else if (pool == "MAX") {
    out = scattered(-3.4e38, "max");
  } else {
    const std::string at = pool == "FIRST" ? rows.begins : graph.Add("Sub", {rows.ends, graph.Int(1)});
    // Adds one value, so that a trailing empty row reads something; results of empty rows are overwritten by padding.
    const std::string padded =
        graph.Add("Concat", {values, graph.Add("Slice", {scattered(0, "add"), graph.Ints({0}), graph.Ints({1})})},
                  {{"axis", int64_t{0}}});
    out = graph.Add("Gather", {padded, at}, {{"axis", int64_t{0}}});
  }
  const double pad = static_cast<double>(op.Float("pad_value"));
  if (pool == "MAX" || pool == "FIRST" || pool == "LAST" || pad != 0) {
    const std::string is_empty = graph.Add("Equal", {Widened(graph, rows.lengths, rank), graph.Int(0)});
    out = graph.Add("Where", {is_empty, graph.Number(pad, x), out});
  }
  return DoneFlat(op, graph, out);
}

Status Concat(const OpView& op, OnnxGraph& graph) {
  std::vector<std::string> values;
  for (const std::string& name : InputArguments(op.desc(), "X")) values.push_back(graph.Value(name));
  return Done(op, graph, graph.Add("Concat", values, {{"axis", op.Int("axis")}}));
}

Status Mul(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  const std::string y = In(op, "Y");
  const int64_t columns = op.Int("x_num_col_dims");
  if (graph.Meta(y).dims.rank() != 2 || op.Int("y_num_col_dims") != 1) {
    return Refuse(op, "input Y of more than two axes has no ONNX form");
  }
  std::string left = graph.Value(x);
  if (graph.Meta(x).dims.rank() != columns + 1) {
    if (columns != 1) return Refuse(op, "x_num_col_dims of more than one before several axes has no ONNX form");
    left = graph.Add("Flatten", {left}, {{"axis", int64_t{1}}});
  }
  return Done(op, graph, graph.Add("MatMul", {left, graph.Value(y)}));
}

Result<std::string> MatrixOf(const OpView& op, OnnxGraph& graph, const std::string& name, bool transposed) {
  const int rank = graph.Meta(name).dims.rank();
  if (!transposed) return graph.Value(name);
  if (rank < 2) return Refuse(op, "a transposed vector has no ONNX form");
  std::vector<int64_t> order;
  for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return graph.Add("Transpose", {graph.Value(name)}, {{"perm", order}});
}

Status Matmul(const OpView& op, OnnxGraph& graph) {
  const bool v2 = op.type() == "matmul_v2";
  MR_ASSIGN(const std::string x, MatrixOf(op, graph, In(op, "X"), op.Bool(v2 ? "trans_x" : "transpose_X")));
  MR_ASSIGN(const std::string y, MatrixOf(op, graph, In(op, "Y"), op.Bool(v2 ? "trans_y" : "transpose_Y")));
  std::string out = graph.Add("MatMul", {x, y});
  if (!v2 && op.Float("alpha") != 1) out = graph.Add("Mul", {out, graph.Number(op.Float("alpha"), In(op, "X"))});
  return Done(op, graph, out);
}

Status Elementwise(const OpView& op, OnnxGraph& graph) {
  static const std::map<std::string_view, std::string_view> kTypes = {
      {"elementwise_add", "Add"}, {"elementwise_sub", "Sub"}, {"elementwise_mul", "Mul"}, {"elementwise_div", "Div"}};
  const std::string x = In(op, "X");
  const std::string y = In(op, "Y");
  const int x_rank = graph.Meta(x).dims.rank();
  const int y_rank = graph.Meta(y).dims.rank();
  std::string right = graph.Value(y);
  // ONNX aligns shapes at their ends, `axis` at an axis of X.
  const int64_t trailing = op.Int("axis") < 0 ? 0 : x_rank - op.Int("axis") - y_rank;
  if (trailing > 0) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < trailing; ++i) axes.push_back(y_rank + i);
    right = graph.Add("Unsqueeze", {right, graph.Ints(axes)});
  }
  return Done(op, graph, graph.Add(kTypes.at(op.type()), {graph.Value(x), right}));
}

Status Activation(const OpView& op, OnnxGraph& graph) {
  static const std::map<std::string_view, std::string_view> kTypes = {
      {"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"}, {"assign", "Identity"},
      {"abs", "Abs"},   {"sqrt", "Sqrt"},       {"exp", "Exp"},   {"log", "Log"}};
  return Done(op, graph, graph.Add(kTypes.at(op.type()), {graph.Value(In(op, "X"))}));
}

Status Softmax(const OpView& op, OnnxGraph& graph) {
  return Done(op, graph, graph.Add("Softmax", {graph.Value(In(op, "X"))}, {{"axis", op.Int("axis")}}));
}

Status LeakyRelu(const OpView& op, OnnxGraph& graph) {
  return Done(op, graph, graph.Add("LeakyRelu", {graph.Value(In(op, "X"))}, {{"alpha", op.Float("alpha")}}));
}

Status Square(const OpView& op, OnnxGraph& graph) {
  const std::string x = graph.Value(In(op, "X"));
  return Done(op, graph, graph.Add("Mul", {x, x}));
}

Status Scale(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  const std::string scale = graph.Number(op.Float("scale"), x);
  const std::string bias = graph.Number(op.Float("bias"), x);
  const std::string value = graph.Value(x);
  const bool after = op.Bool("bias_after_scale");
  const std::string first = after ? graph.Add("Mul", {value, scale}) : graph.Add("Add", {value, bias});
  return Done(op, graph, after ? graph.Add("Add", {first, bias}) : graph.Add("Mul", {first, scale}));
}

Status Cast(const OpView& op, OnnxGraph& graph) {
  static const std::map<int64_t, int64_t> kTypes = {{VarType::FP32, onnx::FLOAT},
                                                    {VarType::FP64, onnx::DOUBLE},
                                                    {VarType::INT64, onnx::INT64},
                                                    {VarType::INT32, onnx::INT32}};
  const auto to = kTypes.find(op.Int("out_dtype"));
  if (to == kTypes.end()) return Refuse(op, "out_dtype " + std::to_string(op.Int("out_dtype")) + " has no ONNX form");
  return Done(op, graph, graph.Add("Cast", {graph.Value(In(op, "X"))}, {{"to", to->second}}));
}

Status Reshape(const OpView& op, OnnxGraph& graph) {
  return DoneFlat(op, graph, graph.Add("Reshape", {graph.Value(In(op, "X")), graph.Ints(op.Ints("shape"))}));
}

Status Squeeze(const OpView& op, OnnxGraph& graph) {
  const std::vector<int64_t> axes = op.Ints("axes");
  if (axes.empty()) return Refuse(op, "without axes it has no ONNX form");
  const char* type = op.type() == "squeeze2" ? "Squeeze" : "Unsqueeze";
  return DoneFlat(op, graph, graph.Add(type, {graph.Value(In(op, "X")), graph.Ints(axes)}));
}

Status Reduce(const OpView& op, OnnxGraph& graph) {
  const std::string x = graph.Value(In(op, "X"));
  if (op.type() == "mean") {
    return DoneFlat(op, graph, graph.Add("Reshape", {graph.Add("ReduceMean", {x}), graph.Ints({1})}));
  }
  const std::string axes = op.Bool("reduce_all") ? "" : graph.Ints(op.Ints("dim"));
  const char* type = op.type() == "reduce_sum" ? "ReduceSum" : "ReduceMean";
  return DoneFlat(op, graph, graph.Add(type, {x, axes}, {{"keepdims", int64_t{op.Bool("keep_dim")}}}));
}

Status Sum(const OpView& op, OnnxGraph& graph) {
  std::vector<std::string> values;
  for (const std::string& name : InputArguments(op.desc(), "X")) values.push_back(graph.Value(name));
  return Done(op, graph, graph.Add("Sum", values));
}

Status Slice(const OpView& op, OnnxGraph& graph) {
  std::string out = graph.Add("Slice", {graph.Value(In(op, "Input")), graph.Ints(op.Ints("starts")),
                                        graph.Ints(op.Ints("ends")), graph.Ints(op.Ints("axes"))});
  const std::vector<int64_t> dropped = op.Ints("decrease_axis");
  if (!dropped.empty()) out = graph.Add("Squeeze", {out, graph.Ints(dropped)});
  return DoneFlat(op, graph, out);
}

Status Clip(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  return Done(op, graph,
              graph.Add("Clip", {graph.Value(x), graph.Number(op.Float("min"), x), graph.Number(op.Float("max"), x)}));
}

Status Dropout(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  if (op.String("dropout_implementation") == "upscale_in_train") {
    return Done(op, graph, graph.Add("Identity", {graph.Value(x)}));
  }
  return Done(op, graph, graph.Add("Mul", {graph.Value(x), graph.Number(1 - op.Float("dropout_prob"), x)}));
}

Status FillLike(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  if (op.Int("dtype") != -1 && op.Int("dtype") != VarType::FP32) return Refuse(op, "only float32 has an ONNX form");
  const std::string shape = graph.Add("Shape", {graph.Value(x)});
  return Done(op, graph, graph.Add("Expand", {graph.Number(op.Float("value"), x), shape}));
}

Status Transpose(const OpView& op, OnnxGraph& graph) {
  return DoneFlat(op, graph, graph.Add("Transpose", {graph.Value(In(op, "X"))}, {{"perm", op.Ints("axis")}}));
}

/// Merges axes [start, stop]; later axes must have known sizes.
Status Flatten(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  if (op.type() == "flatten2") {
    return DoneFlat(op, graph, graph.Add("Flatten", {graph.Value(x)}, {{"axis", op.Int("axis")}}));
  }
  const Dims dims = graph.Meta(x).dims;
  const auto front = [&](int64_t axis) { return static_cast<int>(axis < 0 ? axis + dims.rank() : axis); };
  const int start = front(op.Int("start_axis"));
  std::vector<int64_t> shape(static_cast<size_t>(start), 0);
  shape.push_back(-1);
  for (int axis = front(op.Int("stop_axis")) + 1; axis < dims.rank(); ++axis) {
    if (dims[axis] < 0) return Refuse(op, "an axis of unknown size behind the flattened ones has no ONNX form");
    shape.push_back(dims[axis]);
  }
  return DoneFlat(op, graph, graph.Add("Reshape", {graph.Value(x), graph.Ints(shape)}));
}

Status Stack(const OpView& op, OnnxGraph& graph) {
  const int rank = graph.Meta(In(op, "X")).dims.rank();
  const int64_t axis = op.Int("axis") < 0 ? op.Int("axis") + rank + 1 : op.Int("axis");
  std::vector<std::string> values;
  for (const std::string& name : InputArguments(op.desc(), "X")) {
    values.push_back(graph.Add("Unsqueeze", {graph.Value(name), graph.Ints({axis})}));
  }
  graph.SetOutput(op.desc(), "Y", graph.Add("Concat", values, {{"axis", axis}}), "");
  return Status::Ok();
}

Status BatchNorm(const OpView& op, OnnxGraph& graph) {
  const std::string layout = op.String("data_layout");
  if (layout == "NHWC") {
    return InvalidConfig("batch_norm (" + OutputArguments(op.desc(), "Y").at(0) +
                         "): data_layout NHWC has no ONNX form");
  }
  std::vector<std::string> inputs;
  for (const char* parameter : {"X", "Scale", "Bias", "Mean", "Variance"}) {
    inputs.push_back(graph.Value(In(op, parameter)));
  }
  const std::string y = graph.Add("BatchNormalization", inputs, {{"epsilon", op.Float("epsilon")}});
  graph.SetOutput(op.desc(), "Y", y, In(op, "X"));
  return Status::Ok();
}

/// Built from nodes for means and products, because LayerNormalization requires a scale.
Status LayerNorm(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  const Dims dims = graph.Meta(x).dims;
  std::vector<int64_t> normed;
  std::vector<int64_t> shape;
  for (int axis = static_cast<int>(op.Int("begin_norm_axis")); axis < dims.rank(); ++axis) {
    normed.push_back(axis);
    shape.push_back(dims[axis]);
  }
  const std::string axes = graph.Ints(normed);
  const OnnxAttrs keep = {{"keepdims", int64_t{1}}};
  const std::string centered =
      graph.Add("Sub", {graph.Value(x), graph.Add("ReduceMean", {graph.Value(x), axes}, keep)});
  const std::string variance = graph.Add("ReduceMean", {graph.Add("Mul", {centered, centered}), axes}, keep);
  const std::string spread = graph.Add("Sqrt", {graph.Add("Add", {variance, graph.Number(op.Float("epsilon"), x)})});
  std::string y = graph.Add("Div", {centered, spread});
  for (const auto& [parameter, type] : {std::pair{"Scale", "Mul"}, std::pair{"Bias", "Add"}}) {
    if (InputArguments(op.desc(), parameter).empty()) continue;
    y = graph.Add(type, {y, graph.Add("Reshape", {graph.Value(In(op, parameter)), graph.Ints(shape)})});
  }
  graph.SetOutput(op.desc(), "Y", y, In(op, "X"));
  return Status::Ok();
}

Status Split(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  const int rank = graph.Meta(x).dims.rank();
  const auto axis = static_cast<int>(op.Int("axis") < 0 ? op.Int("axis") + rank : op.Int("axis"));
  int64_t begin = 0;
  for (const std::string& name : OutputArguments(op.desc(), "Out")) {
    const Dims part = graph.Meta(name).dims;
    if (!InputArguments(op.desc(), "AxisTensor").empty() || part[axis] < 0) {
      return Refuse(op, "parts whose sizes only a batch tells have no ONNX form");
    }
    OpDesc one;
    SetOutput(one, "Out", {name});
    graph.SetOutput(
        one, "Out",
        graph.Add("Slice", {graph.Value(x), graph.Ints({begin}), graph.Ints({begin + part[axis]}), graph.Ints({axis})}),
        "");
    begin += part[axis];
  }
  return Status::Ok();
}

Status OneHot(const OpView& op, OnnxGraph& graph) {
  if (!InputArguments(op.desc(), "depth_tensor").empty()) return Refuse(op, "a depth_tensor has no ONNX form");
  const std::map<int64_t, int64_t> types = {{VarType::FP32, onnx::FLOAT}, {VarType::INT64, onnx::INT64}};
  const auto type = types.find(op.Int("dtype"));
  if (type == types.end()) return Refuse(op, "dtype " + std::to_string(op.Int("dtype")) + " has no ONNX form");
  std::string ids = graph.Value(In(op, "X"));
  if (op.type() == "one_hot") ids = graph.Add("Squeeze", {ids, graph.Ints({-1})});
  const std::string values = graph.Add("Cast", {graph.Ints({0, 1})}, {{"to", type->second}});
  return Done(op, graph, graph.Add("OneHot", {ids, graph.Ints({op.Int("depth")}), values}, {{"axis", int64_t{-1}}}));
}

/// The last column of X, calibrated: a line through its logits, or the first point's value plus, for each segment, its
/// slope times the part of it below X.
Status Calibration(const OpView& op, OnnxGraph& graph) {
  const std::string x = In(op, "X");
  const auto number = [&](float value) { return graph.Number(static_cast<double>(value), x); };
  const std::string share =
      graph.Add("Slice", {graph.Value(x), graph.Ints({-1}), graph.Ints({INT64_MAX}), graph.Ints({1})});
  const std::vector<float> points = op.Floats("points");
  const std::vector<float> values = op.Floats("values");
  if (points.empty()) {
    const std::string p = graph.Add("Clip", {share, number(kLeastShare), number(kMostShare)});
    const std::string rest = graph.Add("Sub", {number(1), p});
    std::string logit = graph.Add("Sub", {graph.Add("Log", {p}), graph.Add("Log", {rest})});
    if (op.Float("center") != 0) logit = graph.Add("Sub", {logit, number(op.Float("center"))});
    logit = graph.Add("Add", {graph.Add("Mul", {logit, number(op.Float("slope"))}), number(op.Float("intercept"))});
    return DoneFlat(op, graph, graph.Add("Sigmoid", {logit}));
  }
  std::vector<float> widths;
  std::vector<float> slopes;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    widths.push_back(points[i + 1] - points[i]);
    slopes.push_back((values[i + 1] - values[i]) / widths.back());
  }
  const std::string first = number(values.front());
  // A single point has no segments.
  if (widths.empty()) return DoneFlat(op, graph, graph.Add("Add", {graph.Add("Mul", {share, number(0)}), first}));
  const auto pieces = static_cast<int64_t>(widths.size());
  const std::string begins = graph.Floats({points.begin(), points.end() - 1}, {pieces});
  const std::string behind = graph.Add("Relu", {graph.Add("Sub", {share, begins})});
  const std::string within = graph.Add("Min", {behind, graph.Floats(widths, {pieces})});
  const std::string risen = graph.Add("MatMul", {within, graph.Floats(slopes, {pieces, 1})});
  return DoneFlat(op, graph, graph.Add("Add", {risen, first}));
}

const std::map<std::string_view, OpTranslator>& Translations() {
  static const std::map<std::string_view, OpTranslator> kAll = {
      {"lookup_table", Lookup},
      {"lookup_table_v2", Lookup},
      {"sequence_pool", SequencePool},
      {"concat", Concat},
      {"mul", Mul},
      {"matmul", Matmul},
      {"matmul_v2", Matmul},
      {"elementwise_add", Elementwise},
      {"elementwise_sub", Elementwise},
      {"elementwise_mul", Elementwise},
      {"elementwise_div", Elementwise},
      {"relu", Activation},
      {"sigmoid", Activation},
      {"tanh", Activation},
      {"assign", Activation},
      {"abs", Activation},
      {"sqrt", Activation},
      {"exp", Activation},
      {"log", Activation},
      {"transpose", Transpose},
      {"transpose2", Transpose},
      {"flatten2", Flatten},
      {"flatten_contiguous_range", Flatten},
      {"stack", Stack},
      {"batch_norm", BatchNorm},
      {"layer_norm", LayerNorm},
      {"split", Split},
      {"one_hot", OneHot},
      {"one_hot_v2", OneHot},
      {"softmax", Softmax},
      {"leaky_relu", LeakyRelu},
      {"square", Square},
      {"scale", Scale},
      {"cast", Cast},
      {"reshape2", Reshape},
      {"squeeze2", Squeeze},
      {"unsqueeze2", Squeeze},
      {"mean", Reduce},
      {"reduce_sum", Reduce},
      {"reduce_mean", Reduce},
      {"sum", Sum},
      {"slice", Slice},
      {"clip", Clip},
      {"calibration", Calibration},
      {"dropout", Dropout},
      {"fill_any_like", FillLike},
  };
  return kAll;
}

}  // namespace

bool HasOnnxForm(std::string_view type) { return Translations().contains(type); }

Status AppendOnnx(const OpView& op, OnnxGraph& graph) { return Translations().at(op.type())(op, graph); }

}  // namespace millrace
