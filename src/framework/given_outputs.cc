#include "framework/given_outputs.h"

#include <algorithm>
#include <span>

#include "framework/lod_offsets.h"
#include "framework/tensor.h"

namespace millrace {
namespace {

std::string ShownLoD(std::span<const uint32_t> lod) {
  constexpr size_t kShown = 6;
  std::string text = "[";
  for (size_t i = 0; i < std::min(lod.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + std::to_string(lod[i]);
  return text + (lod.size() > kShown ? ", ..., " + std::to_string(lod.back()) + "]" : "]");
}

}  // namespace

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
    if (output.meta->kind == VarType::LOD_TENSOR && output.variable->Is<Tensor>()) {
      const Tensor& tensor = output.variable->Get<Tensor>();
      if (tensor.empty() && tensor.numel() != 0) {
        return InvalidConfig("plugin \"" + plugin_ + "\" gave \"" + output.name + "\" no values");
      }
      if (!tensor.lod().empty() && !CutsFirstAxis(tensor.lod(), tensor.dims())) {
        return InvalidConfig("plugin \"" + plugin_ + "\" gave \"" + output.name + "\" a LoD that does not cut " +
                             tensor.dims().ToString() + " into sequences: " + ShownLoD(tensor.lod()) +
                             "; offsets begin at 0, never fall, and end at the size of axis 0");
      }
    }
    if (FitsMeta(*output.variable, *output.meta)) continue;
    const Tensor& given = output.variable->Get<Tensor>();
    return InvalidConfig("plugin \"" + plugin_ + "\" gave " + ShownMeta(output.name, given.dtype(), given.dims()) +
                         ", and its shape rule promised " +
                         ShownMeta(output.name, output.meta->dtype, output.meta->dims));
  }
  return Status::Ok();
}

}  // namespace millrace
