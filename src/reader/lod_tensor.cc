#include "reader/lod_tensor.h"

#include "runtime/lod_offsets.h"

namespace millrace {
namespace {

bool FitsDims(const Dims& dims, const Dims& wanted) {
  if (dims.rank() != wanted.rank()) return false;
  for (int axis = 0; axis < dims.rank(); ++axis) {
    if (wanted[axis] >= 0 && wanted[axis] != dims[axis]) return false;
  }
  return true;
}

}  // namespace

std::string TensorSpec::ToString() const {
  std::string text = std::string(DTypeName(dtype)) + " " + dims.ToString();
  if (lod_level > 0) text += " of lod_level " + std::to_string(lod_level);
  return text;
}

size_t InstanceSize(const TensorSpec& spec) {
  size_t size = 1;
  for (const int64_t axis : spec.dims.sizes()) size *= static_cast<size_t>(axis < 0 ? 1 : axis);
  return size;
}

void* ResizeToInstance(const TensorSpec& spec, size_t count, LoDTensor* tensor) {
  tensor->lod.clear();
  if (spec.lod_level > 0) {
    tensor->lod.assign({0, static_cast<uint32_t>(count)});
    return tensor->values.ResizeRaw(spec.dtype, {static_cast<int64_t>(count), 1});
  }
  Dims dims = spec.dims;
  if (dims.rank() > 0 && dims[0] < 0) dims.set(0, 1);
  return tensor->values.ResizeRaw(spec.dtype, dims);
}

Status CheckInstanceSpecs(const std::vector<TensorSpec>& specs) {
  for (size_t i = 0; i < specs.size(); ++i) {
    const Dims& dims = specs[i].dims;
    const std::string where = "output " + std::to_string(i) + ": " + specs[i].ToString() + ": ";
    if (specs[i].lod_level > 0 && !(dims.rank() == 2 && dims[0] < 0 && dims[1] == 1)) {
      return InvalidConfig(where + "a list of values has the shape [-1, 1]");
    }
    for (int axis = 1; axis < dims.rank(); ++axis) {
      if (dims[axis] < 0) return InvalidConfig(where + "only the first size of a record may be -1");
    }
  }
  return Status::Ok();
}

Status NegativeId(const std::string& where, const std::string& value, std::string_view what_to_do) {
  return BadData(where + ": " + value + " is below 0, and no id of a table; " + std::string(what_to_do));
}

Status CheckTensor(const LoDTensor& tensor, const TensorSpec& spec) {
  const Tensor& values = tensor.values;
  const int lod_level = tensor.lod.empty() ? 0 : 1;
  const bool fits = values.dtype() == spec.dtype && lod_level == spec.lod_level && FitsDims(values.dims(), spec.dims);
  if (fits && (lod_level == 0 || CutsFirstAxis(tensor.lod, values.dims()))) return Status::Ok();
  const TensorSpec got{values.dtype(), values.dims(), lod_level};
  if (!fits) return BadData("wanted " + spec.ToString() + ", got " + got.ToString());
  return BadData("the LoD does not cut " + got.ToString() + ": " + std::to_string(tensor.lod.size()) +
                 " offsets from " + std::to_string(tensor.lod.front()) + " to " + std::to_string(tensor.lod.back()));
}

}  // namespace millrace
