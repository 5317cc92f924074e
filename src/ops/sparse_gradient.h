#pragma once

#include <string_view>

#include "ops/kernel.h"
#include "ops/row_merger.h"

namespace millrace {

/// What input `parameter` holds as a sparse gradient; null when it holds a tensor. The operators that write it were
/// made before, so this is known when a kernel is made.
inline Result<const SelectedRows*> RowsInput(const KernelContext& context, std::string_view parameter) {
  MR_ASSIGN(const std::vector<Variable*> bound, context.InputVariables(parameter));
  const bool sparse = !bound.empty() && bound[0] != nullptr && bound[0]->Is<SelectedRows>();
  return sparse ? &bound[0]->Get<SelectedRows>() : nullptr;
}

inline Result<SelectedRows*> RowsOutput(const KernelContext& context, std::string_view parameter) {
  MR_ASSIGN(const std::vector<Variable*> bound, context.OutputVariables(parameter));
  if (bound.empty() || bound[0] == nullptr) {
    return InvalidConfig(context.op().type() + ": output " + std::string(parameter) + " is not bound");
  }
  return bound[0]->GetMutable<SelectedRows>();
}

/// Copies a sparse gradient into `out`, which may be the same, each value through `map`.
template <class Map>
void CopyRows(const SelectedRows& from, const Map& map, SelectedRows* out) {
  const Dims dims = from.values.dims();
  const int64_t count = from.rows.empty() ? 0 : from.values.numel();
  const float* values = count == 0 ? nullptr : from.values.data<float>();
  if (out != &from) {
    out->TakeRows(from);
    out->values.Resize<float>(dims);
  }
  float* to = count == 0 ? nullptr : out->values.mutable_data<float>();
  for (int64_t i = 0; i < count; ++i) to[i] = map(values[i]);
}

}  // namespace millrace
