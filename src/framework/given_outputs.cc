#include "framework/given_outputs.h"

#include "framework/tensor.h"

namespace millrace {

bool FitsMeta(const Variable& variable, const VarMeta& meta) {
  if (meta.kind != VarType::LOD_TENSOR || !variable.Is<Tensor>()) return true;
  const Tensor& tensor = variable.Get<Tensor>();
  if (tensor.empty() || meta.dims.rank() == 0) return true;
  if (tensor.dtype() != meta.dtype || tensor.dims().rank() != meta.dims.rank()) return false;
  for (int axis = 0; axis < meta.dims.rank(); ++axis) {
    if (meta.dims[axis] >= 0 && meta.dims[axis] != tensor.dims()[axis]) return false;
  }
  return true;
}

std::string ShownMeta(std::string_view name, DType dtype, const Dims& dims) {
  return "\"" + std::string(name) + "\" " + std::string(DTypeName(dtype)) + " " + dims.ToString();
}

GivenOutputs::GivenOutputs(const OpView& op, const Scope& scope, const VarMetas& metas) : plugin_(op.info().plugin) {
  if (plugin_.empty()) return;
  for (const OpDesc::Var& output : op.desc().outputs()) {
    for (const std::string& name : output.arguments()) {
      const auto meta = metas.find(name);
      const Variable* const variable = scope.Find(name);
      if (variable != nullptr && meta != metas.end()) outputs_.push_back({name, variable, &meta->second});
    }
  }
}

Status GivenOutputs::Check() const {
  for (const Output& output : outputs_) {
    if (FitsMeta(*output.variable, *output.meta)) continue;
    const Tensor& given = output.variable->Get<Tensor>();
    return InvalidConfig("plugin \"" + plugin_ + "\" gave " + ShownMeta(output.name, given.dtype(), given.dims()) +
                         ", and its shape rule promised " +
                         ShownMeta(output.name, output.meta->dtype, output.meta->dims));
  }
  return Status::Ok();
}

}  // namespace millrace
