#include "reader/lod_tensor.h"

#include <algorithm>

namespace millrace {
namespace {

bool FitsDims(const Dims& dims, const Dims& wanted) {
  if (dims.rank() != wanted.rank()) return false;
  for (int axis = 0; axis < dims.rank(); ++axis) {
    if (wanted[axis] >= 0 && wanted[axis] != dims[axis]) return false;
  }
  return true;
}

bool IsLoDOf(std::span<const uint32_t> lod, const Dims& dims) {
  return dims.rank() > 0 && lod.front() == 0 && lod.back() == dims[0] && std::is_sorted(lod.begin(), lod.end());
}

}  // namespace

std::string TensorSpec::ToString() const {
  std::string text = std::string(DTypeName(dtype)) + " " + dims.ToString();
  if (lod_level > 0) text += " of lod_level " + std::to_string(lod_level);
  return text;
}

Status CheckTensor(const LoDTensor& tensor, const TensorSpec& spec) {
  const TensorSpec got{tensor.values.dtype(), tensor.values.dims(), tensor.lod.empty() ? 0 : 1};
  const bool fits = got.dtype == spec.dtype && got.lod_level == spec.lod_level && FitsDims(got.dims, spec.dims);
  if (!fits) return BadData("wanted " + spec.ToString() + ", got " + got.ToString());
  if (tensor.lod.empty() || IsLoDOf(tensor.lod, got.dims)) return Status::Ok();
  return BadData("the LoD does not cut " + got.ToString() + ": " + std::to_string(tensor.lod.size()) +
                 " offsets from " + std::to_string(tensor.lod.front()) + " to " + std::to_string(tensor.lod.back()));
}

}  // namespace millrace
