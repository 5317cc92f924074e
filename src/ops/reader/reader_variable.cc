#include "ops/reader/reader_variable.h"

#include "program/var_meta.h"

namespace millrace {
namespace {

Result<ReaderHolder*> ReaderOf(const std::vector<Variable*>& variables, const std::string& where,
                               const std::string& name) {
  if (variables.empty() || variables[0] == nullptr) return InvalidConfig(where + " is not bound");
  Variable* variable = variables[0];
  if (!variable->empty() && !variable->Is<ReaderHolder>()) {
    return InvalidConfig(where + ": variable \"" + name + "\" holds no reader");
  }
  return variable->GetMutable<ReaderHolder>();
}

/// `values` has one entry an output, or none at all.
Status CheckCount(const std::string& name, size_t values, size_t outputs) {
  if (values == 0 || values == outputs) return Status::Ok();
  return InvalidConfig("attribute \"" + name + "\" has " + std::to_string(values) + " entries, and \"ranks\" has " +
                       std::to_string(outputs) + "; there is one for each output, or none");
}

Result<DType> ToTensorType(int64_t type) {
  if (VarType::Type_IsValid(static_cast<int>(type)) && IsTensorType(static_cast<VarType::Type>(type))) {
    return ToDType(static_cast<VarType::Type>(type));
  }
  return InvalidConfig("attribute \"dtypes\": " + std::to_string(type) + " is not the number of a tensor's type");
}

}  // namespace

Result<ReaderHolder*> InputReader(KernelContext& context, std::string_view parameter) {
  MR_ASSIGN(const std::vector<Variable*> variables, context.InputVariables(parameter));
  return ReaderOf(variables, context.op().type() + ": input " + std::string(parameter), context.InputName(parameter));
}

Result<ReaderHolder*> OutputReader(KernelContext& context, std::string_view parameter) {
  MR_ASSIGN(const std::vector<Variable*> variables, context.OutputVariables(parameter));
  return ReaderOf(variables, context.op().type() + ": output " + std::string(parameter), context.OutputName(parameter));
}

namespace {

Result<std::vector<TensorSpec>> SpecsOf(const KernelContext& context) {
  const OpView& op = context.op();
  const std::vector<int64_t> ranks = op.Ints("ranks");
  const std::vector<int64_t> sizes = op.Ints("shape_concat");
  const std::vector<int64_t> lod_levels = op.Ints("lod_levels");
  const std::vector<int64_t> dtypes = op.Ints("dtypes");
  const std::vector<std::string> names = op.Strings("names");
  if (ranks.empty()) return InvalidConfig("attribute \"ranks\" is empty: how many axes has each output?");
  MR_TRY(CheckCount("lod_levels", lod_levels.size(), ranks.size()));
  MR_TRY(CheckCount("dtypes", dtypes.size(), ranks.size()));
  MR_TRY(CheckCount("names", names.size(), ranks.size()));
  const VarDesc* declared = context.Declaration(context.OutputName("Out"));
  std::vector<TensorSpec> specs(ranks.size());
  size_t at = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    TensorSpec& spec = specs[i];
    if (ranks[i] < 0 || ranks[i] > Dims::kMaxRank || at + static_cast<size_t>(ranks[i]) > sizes.size()) {
      return InvalidConfig("attribute \"ranks\" asks for more sizes than \"shape_concat\" has: output " +
                           std::to_string(i) + " has rank " + std::to_string(ranks[i]) + ", and " +
                           std::to_string(sizes.size() - at) + " sizes are left");
    }
    for (int64_t axis = 0; axis < ranks[i]; ++axis) spec.dims.push_back(sizes[at++]);
    if (!lod_levels.empty()) {
      if (lod_levels[i] < 0 || lod_levels[i] > 1) {
        return InvalidConfig("attribute \"lod_levels\": " + std::to_string(lod_levels[i]) +
                             "; outputs have no LoD (0) or one level (1)");
      }
      spec.lod_level = static_cast<int>(lod_levels[i]);
    }
    if (!names.empty()) spec.name = names[i];
    if (!dtypes.empty()) {
      MR_ASSIGN(spec.dtype, ToTensorType(dtypes[i]));
    } else if (declared != nullptr && declared->type().reader().lod_tensor_size() == static_cast<int>(specs.size())) {
      MR_ASSIGN(spec.dtype,
                ToTensorType(declared->type().reader().lod_tensor(static_cast<int>(i)).tensor().data_type()));
    }
  }
  if (at == sizes.size()) return specs;
  return InvalidConfig("attribute \"shape_concat\" has " + std::to_string(sizes.size()) + " sizes, and the ranks use " +
                       std::to_string(at));
}

}  // namespace

Result<std::vector<TensorSpec>> ReadTensorSpecs(const KernelContext& context) {
  return SpecsOf(context).Context(context.op().type());
}

}  // namespace millrace
