#include "serving/onnx_graph.h"

#include <algorithm>
#include <span>

#include "program/var_meta.h"

namespace millrace {
namespace {

constexpr char kRows[] = "rows";

template <class T>
std::string BytesOf(std::span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

onnx::DataType ToOnnx(DType type) {
  switch (type) {
    case DType::kFloat32: return onnx::FLOAT;
    case DType::kFloat64: return onnx::DOUBLE;
    case DType::kInt64: return onnx::INT64;
    case DType::kInt32: return onnx::INT32;
    case DType::kBool: return onnx::BOOL;
    default: return onnx::UNDEFINED;
  }
}

onnx::Value Described(const std::string& name, onnx::DataType type, const Dims& dims, const std::string& open) {
  onnx::Value value;
  value.set_name(name);
  auto* tensor = value.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  auto* shape = tensor->mutable_shape();
  for (const int64_t size : dims.sizes()) {
    onnx::Shape::Dimension* dim = shape->add_dim();
    if (size < 0) dim->set_dim_param(open);
    if (size >= 0) dim->set_dim_value(size);
  }
  return value;
}

onnx::Attribute AttributeOf(std::string_view name, const AttrValue& value) {
  onnx::Attribute attribute;
  attribute.set_name(std::string(name));
  if (const auto* i = std::get_if<int64_t>(&value)) {
    attribute.set_type(onnx::Attribute::INT);
    attribute.set_i(*i);
  } else if (const auto* f = std::get_if<float>(&value)) {
    attribute.set_type(onnx::Attribute::FLOAT);
    attribute.set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    attribute.set_type(onnx::Attribute::STRING);
    attribute.set_s(*s);
  } else {
    attribute.set_type(onnx::Attribute::INTS);
    const auto& ints = std::get<std::vector<int64_t>>(value);
    attribute.mutable_ints()->Add(ints.begin(), ints.end());
  }
  return attribute;
}

}  // namespace

Result<OnnxGraph> OnnxGraph::Create(const FeedList& feed) {
  OnnxGraph graph;
  graph.graph_.set_name("millrace");
  for (const VarDesc& var : feed.program.blocks(0).vars()) {
    MR_ASSIGN(graph.vars_[var.name()], ToMeta(var));
  }
  for (const std::string& name : feed.vars) {
    const VarMeta& meta = graph.Meta(name);
    const onnx::DataType type = ToOnnx(meta.dtype);
    if (type == onnx::UNDEFINED) {
      return InvalidConfig("variable \"" + name + "\" of type " + std::string(DTypeName(meta.dtype)) +
                           " cannot be an input of an ONNX model");
    }
    graph.AddInput(name, type, meta.dims, meta.lod_level > 0 ? name + ".values" : kRows);
    if (meta.lod_level == 0) continue;
    graph.AddInput(name + ".lod", onnx::INT64, {-1}, "rows_and_one");
    graph.lods_[name] = name;
  }
  return graph;
}

void OnnxGraph::AddInput(const std::string& name, onnx::DataType type, const Dims& dims, const std::string& open) {
  *graph_.add_input() = Described(name, type, dims, open);
  values_[name] = name;
}

void OnnxGraph::AddOutput(const std::string& variable) {
  const VarMeta& meta = Meta(variable);
  onnx::Node* node = graph_.add_node();
  node->set_op_type("Identity");
  node->add_input(Value(variable));
  // An operator may already have written the value under the variable's name.
  const std::string name = values_[variable] == variable ? variable + ".out" : variable;
  node->add_output(name);
  *graph_.add_output() = Described(name, ToOnnx(meta.dtype), meta.dims, kRows);
}

std::string OnnxGraph::Value(const std::string& variable) {
  const auto [value, is_new] = values_.emplace(variable, variable);
  if (is_new) parameters_.push_back(variable);
  return value->second;
}

std::string OnnxGraph::Add(std::string_view type, const std::vector<std::string>& inputs, const OnnxAttrs& attrs) {
  onnx::Node* node = graph_.add_node();
  node->set_op_type(std::string(type));
  for (const std::string& input : inputs) node->add_input(input);
  for (const auto& [name, value] : attrs) *node->add_attribute() = AttributeOf(name, value);
  node->add_output("@" + std::to_string(names_++));
  node->set_name(std::string(type) + node->output(0));
  return node->output(0);
}

void OnnxGraph::SetOutput(const OpDesc& op, std::string_view parameter, const std::string& value,
                          const std::string& lod_from) {
  const std::vector<std::string> outputs = OutputArguments(op, parameter);
  if (outputs.empty()) return;
  const std::string lod = LodOf(lod_from);
  values_[outputs[0]] = value;
  if (lod.empty()) lods_.erase(outputs[0]);
  if (!lod.empty()) lods_[outputs[0]] = lod;
}

std::string OnnxGraph::LodOf(const std::string& variable) const {
  const auto lod = lods_.find(variable);
  return lod == lods_.end() ? "" : lod->second;
}

std::string OnnxGraph::Constant(onnx::DataType type, const std::vector<int64_t>& dims, std::string bytes) {
  onnx::Tensor* tensor = graph_.add_initializer();
  tensor->set_name("@" + std::to_string(names_++));
  tensor->set_data_type(type);
  tensor->mutable_dims()->Add(dims.begin(), dims.end());
  tensor->set_raw_data(std::move(bytes));
  return tensor->name();
}

std::string OnnxGraph::Ints(const std::vector<int64_t>& values) {
  return Constant(onnx::INT64, {static_cast<int64_t>(values.size())}, BytesOf(std::span<const int64_t>(values)));
}

std::string OnnxGraph::Int(int64_t value) {
  return Constant(onnx::INT64, {}, BytesOf(std::span<const int64_t>(&value, 1)));
}

std::string OnnxGraph::Floats(const std::vector<float>& values, const std::vector<int64_t>& dims) {
  return Constant(onnx::FLOAT, dims, BytesOf(std::span<const float>(values)));
}

std::string OnnxGraph::Number(double value, const std::string& like) {
  const DType type = Meta(like).dtype;
  if (type == DType::kInt64) return Int(static_cast<int64_t>(value));
  if (type == DType::kFloat64) return Constant(onnx::DOUBLE, {}, BytesOf(std::span<const double>(&value, 1)));
  const auto number = static_cast<float>(value);
  return Constant(onnx::FLOAT, {}, BytesOf(std::span<const float>(&number, 1)));
}

}  // namespace millrace
