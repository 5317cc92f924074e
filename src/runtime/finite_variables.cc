#include "runtime/finite_variables.h"

#include <memory>
#include <set>
#include <span>
#include <string>

#include "core/float_text.h"
#include "kernels/non_finite.h"
#include "program/program_files.h"
#include "runtime/transfer.h"
#include "table/sparse_table.h"

namespace millrace {
namespace {

constexpr size_t kMostNamed = 8;

template <class T>
std::span<const T> ValuesOf(const Tensor& tensor) {
  return {tensor.data<T>(), static_cast<size_t>(tensor.numel())};
}

/// "3 of 416 values, the first is number 17 (nan)"; empty when all are finite.
template <class T>
std::string DescribeValues(const Tensor& tensor) {
  const std::span<const T> values = ValuesOf<T>(tensor);
  const int64_t count = CountNonFinite(values);
  if (count == 0) return "";
  const int64_t first = FirstNonFinite(values);
  return " " + tensor.dims().ToString() + ": " + std::to_string(count) + " of " + std::to_string(values.size()) +
         " values, the first is number " + std::to_string(first) + " (" +
         std::to_string(WithoutNanSign(values[static_cast<size_t>(first)])) + ")";
}

std::string DescribeTensor(const Tensor& tensor) {
  if (tensor.empty()) return "";
  if (tensor.dtype() == DType::kFloat32) return DescribeValues<float>(tensor);
  return tensor.dtype() == DType::kFloat64 ? DescribeValues<double>(tensor) : "";
}

std::string DescribeTable(const SparseTable& table) {
  const NonFiniteRows found = table.FindNonFinite();
  if (found.rows == 0) return "";
  return ": " + std::to_string(found.rows) + " of " + std::to_string(table.stats().rows) +
         " rows, the first is that of key " + std::to_string(found.least_key);
}

}  // namespace

int64_t FirstNonFinite(const Tensor& tensor) {
  if (tensor.empty()) return -1;
  if (tensor.dtype() == DType::kFloat32) return FirstNonFinite(ValuesOf<float>(tensor));
  return tensor.dtype() == DType::kFloat64 ? FirstNonFinite(ValuesOf<double>(tensor)) : -1;
}

Status CheckFiniteVariables(const ProgramDesc& program, const Scope& root) {
  const std::set<std::string> written = WrittenPersistables(program);
  std::string text;
  size_t variables = 0;
  HostView host_view;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (!var.persistable()) continue;
    const Variable* variable = root.Find(var.name());
    if (variable == nullptr) continue;
    std::string found;
    if (variable->Is<std::unique_ptr<SparseTable>>()) {
      found = DescribeTable(*variable->Get<std::unique_ptr<SparseTable>>());
    } else if (variable->Is<Tensor>() && written.contains(var.name())) {
      MR_ASSIGN(const Tensor* const shown, host_view.Of(variable->Get<Tensor>()));
      found = DescribeTensor(*shown);
    }
    if (found.empty()) continue;
    if (++variables <= kMostNamed) text += "\n  \"" + var.name() + "\"" + found;
  }
  if (variables == 0) return Status::Ok();
  if (variables > kMostNamed) text += "\n  and " + std::to_string(variables - kMostNamed) + " more";
  return BadData("there are NaN or infinite values in what was trained:" + text);
}

}  // namespace millrace
