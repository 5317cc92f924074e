#include "program/var_meta.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace millrace {
namespace {

constexpr std::array<std::pair<VarType::Type, DType>, 10> kTypes = {{
    {VarType::BOOL, DType::kBool},
    {VarType::UINT8, DType::kUint8},
    {VarType::INT8, DType::kInt8},
    {VarType::INT16, DType::kInt16},
    {VarType::INT32, DType::kInt32},
    {VarType::INT64, DType::kInt64},
    {VarType::FP16, DType::kFloat16},
    {VarType::BF16, DType::kBFloat16},
    {VarType::FP32, DType::kFloat32},
    {VarType::FP64, DType::kFloat64},
}};

}  // namespace

bool IsTensorType(VarType::Type type) {
  for (const auto& [known, dtype] : kTypes) {
    if (known == type) return true;
  }
  return false;
}

DType ToDType(VarType::Type type) {
  for (const auto& [known, dtype] : kTypes) {
    if (known == type) return dtype;
  }
  return DType::kFloat32;
}

VarType::Type ToVarType(DType type) {
  for (const auto& [known, dtype] : kTypes) {
    if (dtype == type) return known;
  }
  return VarType::FP32;
}

const VarDesc* FindVar(const ProgramDesc& program, std::string_view name) {
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.name() == name) return &var;
  }
  return nullptr;
}

int64_t ClassesOf(const ProgramDesc& program, std::string_view name) {
  const VarDesc* const var = program.blocks().empty() ? nullptr : FindVar(program, name);
  if (var == nullptr || var->type().type() != VarType::LOD_TENSOR) return 0;
  const auto& dims = var->type().lod_tensor().tensor().dims();
  return dims.size() == 2 && dims[1] > kClickClasses ? dims[1] : 0;
}

bool AreCountable(const Dims& dims) {
  constexpr int64_t kMost = int64_t{1} << 47;
  int64_t product = 1;
  for (const int64_t size : dims.sizes()) {
    if (size < -kMost) return false;
    const int64_t factor = std::max<int64_t>(std::abs(size), 1);
    if (factor > kMost / product) return false;
    product *= factor;
  }
  return true;
}

Result<VarMeta> ToMeta(const VarDesc& var) {
  VarMeta meta;
  meta.kind = var.type().type();
  meta.persistable = var.persistable();
  const bool is_rows = meta.kind == VarType::SELECTED_ROWS;
  const VarType::TensorDesc& tensor = is_rows ? var.type().selected_rows() : var.type().lod_tensor().tensor();
  meta.dtype = ToDType(tensor.data_type());
  if (tensor.dims_size() > Dims::kMaxRank) {
    return InvalidConfig("variable \"" + var.name() + "\" has " + std::to_string(tensor.dims_size()) +
                         " axes; at most " + std::to_string(Dims::kMaxRank) + " are supported");
  }
  for (const int64_t dim : tensor.dims()) meta.dims.push_back(dim);
  if (!AreCountable(meta.dims)) {
    return InvalidConfig("variable \"" + var.name() + "\" has the sizes " + meta.dims.ToString() +
                         ", of which no machine holds a tensor");
  }
  meta.lod_level = var.type().lod_tensor().lod_level();
  return meta;
}

}  // namespace millrace
