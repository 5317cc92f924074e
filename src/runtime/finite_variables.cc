#include "runtime/finite_variables.h"

#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "kernels/non_finite.h"
#include "runtime/tensor.h"
#include "table/sparse_table.h"

namespace millrace {
namespace {

constexpr size_t kMostNamed = 8;

std::set<std::string> WrittenBy(const ProgramDesc& program) {
  std::set<std::string> names;
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      for (const OpDesc::Var& output : op.outputs()) names.insert(output.arguments().begin(), output.arguments().end());
    }
  }
  return names;
}

/// "3 of 416 values, the first is number 17: nan"; empty when all are finite.
std::string DescribeTensor(const Tensor& tensor) {
  if (tensor.empty() || tensor.dtype() != DType::kFloat32) return "";
  const std::span<const float> values(tensor.data<float>(), static_cast<size_t>(tensor.numel()));
  const int64_t count = CountNonFinite(values);
  if (count == 0) return "";
  const int64_t first = FirstNonFinite(values);
  const float value = values[static_cast<size_t>(first)];
  return " " + tensor.dims().ToString() + ": " + std::to_string(count) + " of " + std::to_string(values.size()) +
         " values, the first is number " + std::to_string(first) + " (" +
         (std::isnan(value) ? "nan" : std::to_string(value)) + ")";
}

std::string DescribeTable(const SparseTable& table) {
  const NonFiniteRows found = table.FindNonFinite();
  if (found.rows == 0) return "";
  return ": " + std::to_string(found.rows) + " of " + std::to_string(table.stats().rows) +
         " rows, the first is that of key " + std::to_string(found.least_key);
}

}  // namespace

Status CheckFiniteVariables(const ProgramDesc& program, const Scope& root) {
  const std::set<std::string> written = WrittenBy(program);
  std::string text;
  size_t variables = 0;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (!var.persistable()) continue;
    const Variable* variable = root.Find(var.name());
    if (variable == nullptr) continue;
    std::string found;
    if (variable->Is<std::unique_ptr<SparseTable>>()) {
      found = DescribeTable(*variable->Get<std::unique_ptr<SparseTable>>());
    } else if (variable->Is<Tensor>() && written.contains(var.name())) {
      found = DescribeTensor(variable->Get<Tensor>());
    }
    if (found.empty()) continue;
    if (++variables <= kMostNamed) text += "\n  \"" + var.name() + "\"" + found;
  }
  if (variables == 0) return Status::Ok();
  if (variables > kMostNamed) text += "\n  and " + std::to_string(variables - kMostNamed) + " more";
  return BadData("there are NaN or infinite values in what was trained:" + text);
}

}  // namespace millrace
