#include "runtime/plugin_output_check.h"

#include <algorithm>
#include <span>

#include "runtime/lod_offsets.h"
#include "runtime/tensor.h"

namespace millrace {
namespace {

std::string ShownLoD(std::span<const uint32_t> lod) {
  constexpr size_t kShown = 6;
  std::string text = "[";
  for (size_t i = 0; i < std::min(lod.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + std::to_string(lod[i]);
  return text + (lod.size() > kShown ? ", ..., " + std::to_string(lod.back()) + "]" : "]");
}

/// Whether the batch can set the tensor's number of rows.
bool HasRows(const VarMeta& meta) {
  return meta.kind == VarType::LOD_TENSOR && !meta.persistable && (meta.dims.rank() == 0 || meta.dims[0] < 0);
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

PluginOutputCheck::PluginOutputCheck(const OpView& op, const Scope& scope, const VarMetas& metas)
    : plugin_(op.info().plugin) {
  if (plugin_.empty()) return;
  const auto collect = [&](const google::protobuf::RepeatedPtrField<OpDesc::Var>& bindings, std::vector<Bound>* to) {
    for (const OpDesc::Var& binding : bindings) {
      for (const std::string& name : binding.arguments()) {
        const auto meta = metas.find(name);
        const Variable* const variable = scope.Find(name);
        if (variable != nullptr && meta != metas.end()) to->push_back({name, variable, &meta->second});
      }
    }
  };
  collect(op.desc().outputs(), &outputs_);
  if (op.info().makes_rows) return;
  collect(op.desc().inputs(), &inputs_);
  checks_rows_ = true;
  std::erase_if(inputs_, [this](const Bound& input) {
    const bool is_written = std::any_of(outputs_.begin(), outputs_.end(),
                                        [&](const Bound& output) { return output.variable == input.variable; });
    return is_written || !HasRows(*input.meta);
  });
}

const Tensor* PluginOutputCheck::RowsOf(const Bound& input) {
  if (!input.variable->Is<Tensor>()) return nullptr;
  const Tensor& tensor = input.variable->Get<Tensor>();
  return tensor.dims().rank() == 0 ? nullptr : &tensor;
}

/// -1 in axis 0 is the batch, or the rows of an input, as copied by a shape rule.
Status PluginOutputCheck::CheckRows(const Bound& output, int64_t rows) const {
  if (!checks_rows_ || output.meta->dims.rank() == 0 || !HasRows(*output.meta)) return Status::Ok();
  if (!output.variable->Is<Tensor>()) return Status::Ok();
  const int64_t given = output.variable->Get<Tensor>().dims()[0];
  const auto has_them = [given](const Bound& input) {
    const Tensor* const tensor = RowsOf(input);
    if (tensor == nullptr) return false;
    const bool is_sequences = tensor->has_lod() && given == static_cast<int64_t>(tensor->lod().size()) - 1;
    return is_sequences || given == tensor->dims()[0];
  };
  if (given == rows || std::any_of(inputs_.begin(), inputs_.end(), has_them)) return Status::Ok();
  std::string expected = rows > 0 ? std::to_string(rows) + " in the batch" : "";
  for (const Bound& input : inputs_) {
    const Tensor* const tensor = RowsOf(input);
    if (tensor == nullptr) continue;
    expected += (expected.empty() ? "" : ", ") + std::to_string(tensor->dims()[0]) + " in \"" + input.name + "\"";
  }
  if (expected.empty()) return Status::Ok();
  return InvalidConfig("plugin \"" + plugin_ + "\" gave \"" + output.name + "\" " + std::to_string(given) +
                       " rows, and there are " + expected +
                       "; an operator that makes rows of its own says so where it is registered: MakesRows()");
}

Status PluginOutputCheck::Check(int64_t rows) const {
  for (const Bound& output : outputs_) {
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
    if (FitsMeta(*output.variable, *output.meta)) {
      MR_TRY(CheckRows(output, rows));
      continue;
    }
    const Tensor& given = output.variable->Get<Tensor>();
    return InvalidConfig("plugin \"" + plugin_ + "\" gave " + ShownMeta(output.name, given.dtype(), given.dims()) +
                         ", and its shape rule promised " +
                         ShownMeta(output.name, output.meta->dtype, output.meta->dims));
  }
  return Status::Ok();
}

}  // namespace millrace
