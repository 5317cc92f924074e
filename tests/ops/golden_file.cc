#include "ops/golden_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "paths.h"

namespace millrace {
namespace {

template <class T>
std::vector<T> Numbers(std::string text) {
  for (char& c : text) c = c == ',' ? ' ' : c;
  std::istringstream in(text);
  std::vector<T> numbers;
  for (std::string word; in >> word;) numbers.push_back(static_cast<T>(std::stod(word)));
  return numbers;
}

DType ParseType(const std::string& name) {
  for (const DType type : {DType::kFloat32, DType::kInt64, DType::kInt32, DType::kBool, DType::kUint8}) {
    if (DTypeName(type) == name) return type;
  }
  ADD_FAILURE() << "type " << name;
  return DType::kFloat32;
}

AttrValue ParseAttr(const std::string& kind, const std::string& text) {
  if (kind == "int") return static_cast<int64_t>(std::stoll(text));
  if (kind == "bool") return text == "1";
  if (kind == "float") return std::stof(text);
  if (kind == "ints") return Numbers<int64_t>(text);
  if (kind == "floats") return Numbers<float>(text);
  return text;
}

/// "Param name float32 2,3 lod 0,1" or "Grad name rows 6 4,1", and the line of values after it.
GoldenValue ParseValue(std::istringstream& words, std::ifstream& file) {
  GoldenValue value;
  std::string type;
  std::string sizes;
  std::string more;
  words >> value.parameter >> value.name >> type >> sizes;
  std::string line;
  std::getline(file, line);
  if (type == "rows") {
    words >> more;
    value.rows = Numbers<uint64_t>(more);
    value.height = std::stoll(sizes);
    value.meta.kind = VarType::SELECTED_ROWS;
    const size_t colon = line.find(':');
    value.meta.dims = Dims(Numbers<int64_t>(line.substr(0, colon)));
    value.meta.dims.set(0, value.height);
    line = line.substr(colon + 1);
  } else {
    value.meta.dtype = ParseType(type);
    value.meta.dims = Dims(Numbers<int64_t>(sizes));
    if (words >> more && more == "lod") {
      words >> more;
      value.lod = Numbers<uint32_t>(more);
      value.meta.lod_level = 1;
    }
  }
  value.values = Numbers<double>(line);
  return value;
}

void AddArgument(OpDesc& op, const GoldenValue& value) {
  std::vector<std::string> names = InputArguments(op, value.parameter);
  names.push_back(value.name);
  SetInput(op, value.parameter, names);
}

template <class T>
void Store(const std::vector<double>& values, Tensor* tensor, const Dims& dims) {
  T* to = tensor->Resize<T>(dims);
  for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
}

template <class T>
std::vector<double> Load(const Tensor& tensor) {
  const T* from = tensor.data<T>();
  return {from, from + tensor.numel()};
}

std::string GoldenPath(const std::string& op) { return SourceDir() + "/tests/golden/ops/" + op + ".txt"; }

}  // namespace

std::vector<std::string> OpsWithGolden() {
  std::vector<std::string> ops;
  for (const OpInfo* info : AllOps().all()) {
    if (std::filesystem::exists(GoldenPath(info->type))) ops.push_back(info->type);
  }
  return ops;
}

void Put(const GoldenValue& value, OpSession& session) {
  if (value.meta.kind == VarType::SELECTED_ROWS) {
    SelectedRows* rows = session.rows(value.name);
    rows->height = value.height;
    rows->rows = value.rows;
    Dims dims = value.meta.dims;
    dims.set(0, static_cast<int64_t>(value.rows.size()));
    Store<float>(value.values, &rows->values, dims);
    return;
  }
  Tensor* tensor = session.tensor(value.name);
  switch (value.meta.dtype) {
    case DType::kInt64: Store<int64_t>(value.values, tensor, value.meta.dims); break;
    case DType::kInt32: Store<int32_t>(value.values, tensor, value.meta.dims); break;
    case DType::kBool: Store<bool>(value.values, tensor, value.meta.dims); break;
    default: Store<float>(value.values, tensor, value.meta.dims); break;
  }
  if (!value.lod.empty()) session.SetLod(value.name, value.lod);
}

std::vector<double> ValuesOf(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kInt64: return Load<int64_t>(tensor);
    case DType::kInt32: return Load<int32_t>(tensor);
    case DType::kBool: return Load<bool>(tensor);
    case DType::kUint8: return Load<uint8_t>(tensor);
    default: return Load<float>(tensor);
  }
}

std::vector<GoldenCase> ReadGolden(const std::string& op) {
  std::ifstream file(GoldenPath(op));
  std::vector<GoldenCase> cases;
  bool open = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word.empty() || word[0] == '#') continue;
    if (word == "case") {
      cases.emplace_back();
      cases.back().title = line.substr(5);
      cases.back().steps.emplace_back();
      open = true;
      continue;
    }
    GoldenCase& c = cases.back();
    if (word == "op") {
      words >> word;
      c.op.set_type(word);
    } else if (word == "attr") {
      std::string name;
      std::string kind;
      std::string text;
      words >> name >> kind >> std::ws;
      std::getline(words, text);
      SetAttr(c.op, name, ParseAttr(kind, text));
    } else if (word == "bind") {
      std::string parameter;
      words >> parameter;
      std::vector<std::string> names;
      while (words >> word) names.push_back(word);
      SetOutput(c.op, parameter, names);
    } else if (word == "in") {
      if (!open) c.steps.emplace_back();
      open = true;
      c.steps.back().push_back(ParseValue(words, file));
      if (c.steps.size() == 1) AddArgument(c.op, c.steps.back().back());
    } else if (word == "run") {
      open = false;
    } else if (word == "out") {
      c.expected.push_back(ParseValue(words, file));
    } else {
      ADD_FAILURE() << op << ": " << line;
    }
  }
  return cases;
}

}  // namespace millrace
