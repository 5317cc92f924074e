#include "runtime/finite_variables.h"

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers.h"
#include "core/on_threads.h"
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
         ShortestNumber(values[static_cast<size_t>(first)]) + ")";
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

Status CheckFiniteVariables(const ProgramDesc& program, const Scope& root, int threads) {
  const std::set<std::string> written = WrittenPersistables(program);
  std::vector<std::pair<const VarDesc*, const Variable*>> looked_at;
  for (const VarDesc& var : program.blocks(0).vars()) {
    const Variable* const variable = var.persistable() ? root.Find(var.name()) : nullptr;
    if (variable == nullptr) continue;
    const bool is_trained = variable->Is<Tensor>() && written.contains(var.name());
    if (is_trained || variable->Is<std::unique_ptr<SparseTable>>()) looked_at.emplace_back(&var, variable);
  }
  std::vector<std::string> found(looked_at.size());
  MR_TRY(OnThreads(threads, looked_at.size(), "looking for NaN", [&](size_t i) {
    const Variable& variable = *looked_at[i].second;
    if (variable.Is<Tensor>()) {
      HostView host_view;
      MR_ASSIGN(const Tensor* const shown, host_view.Of(variable.Get<Tensor>()));
      found[i] = DescribeTensor(*shown);
    } else {
      found[i] = DescribeTable(*variable.Get<std::unique_ptr<SparseTable>>());
    }
    return Status::Ok();
  }));
  std::string text;
  size_t variables = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].empty()) continue;
    if (++variables <= kMostNamed) text += "\n  \"" + looked_at[i].first->name() + "\"" + found[i];
  }
  if (variables == 0) return Status::Ok();
  if (variables > kMostNamed) text += "\n  and " + std::to_string(variables - kMostNamed) + " more";
  return BadData("there are NaN or infinite values in what was trained:" + text);
}

}  // namespace millrace
