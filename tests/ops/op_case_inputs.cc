#include "ops/op_case_inputs.h"

#include <algorithm>
#include <numeric>

namespace millrace {
namespace {

DType TypeOf(Draw draw) {
  return draw == Draw::kClass ? DType::kInt64 : draw == Draw::kTruth ? DType::kBool : DType::kFloat32;
}

}  // namespace

OpDesc ForwardOp(const OpCase& c) {
  OpDesc op;
  op.set_type(c.op);
  for (const CaseInput& input : c.inputs) {
    std::vector<std::string> names = InputArguments(op, input.parameter);
    names.push_back(input.name);
    SetInput(op, input.parameter, names);
  }
  for (const auto& [parameter, name] : c.outputs) {
    std::vector<std::string> names = OutputArguments(op, parameter);
    names.push_back(name);
    SetOutput(op, parameter, names);
  }
  for (const auto& [name, value] : c.attrs) SetAttr(op, name, value);
  return op;
}

bool IsWanted(const CaseInput& input) { return input.differentiable && TypeOf(input.draw) == DType::kFloat32; }

std::vector<OpDesc> GradientOps(const OpCase& c) {
  const OpDesc forward = ForwardOp(c);
  NameNumbers wanted;
  NameNumbers have;
  for (const CaseInput& input : c.inputs) {
    if (IsWanted(input)) wanted.Add(input.name);
  }
  for (const std::string& name : c.objective) have.Add(name);
  const OpInfo* info = AllOps().Find(c.op);
  if (info == nullptr || info->grad == nullptr) return {};
  const OpView view(forward, *info);
  return info->grad(GradContext(view, wanted, have));
}

VarMetas InputMetas(const OpCase& c) {
  VarMetas metas;
  for (const CaseInput& input : c.inputs) {
    VarMeta& meta = metas[input.name];
    meta.dims = Dims(input.shape);
    meta.dtype = TypeOf(input.draw);
    meta.lod_level = input.lod ? 1 : 0;
  }
  return metas;
}

float DrawFloat(Draw draw, Rng& rng) {
  const auto u = static_cast<float>(rng.Uniform());
  switch (draw) {
    case Draw::kPositive: return 0.2F + 0.8F * u;
    case Draw::kOffZero: return (rng.Below(2) == 0 ? -1.0F : 1.0F) * (0.1F + u);
    case Draw::kBinary: return rng.Below(2) == 0 ? 0.0F : 1.0F;
    case Draw::kSimplex: return 0.2F + u;
    default: return 2 * u - 1;
  }
}

void Fill(const CaseInput& input, int64_t rows, Rng& rng, const std::vector<OpSession*>& sessions) {
  Dims dims(input.shape);
  std::vector<uint32_t> lod;
  if (input.lod) {
    lod = {0};
    for (int64_t i = 0; i < rows; ++i)
      lod.push_back(lod.back() + input.least + static_cast<uint32_t>(rng.Below(5 - input.least)));
  }
  for (int axis = 0; axis < dims.rank(); ++axis) {
    if (dims[axis] < 0) dims.set(axis, input.lod ? static_cast<int64_t>(lod.back()) : rows);
  }
  const int64_t count = dims.numel();
  std::vector<float> floats(static_cast<size_t>(count));
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (float& value : floats) value = DrawFloat(input.draw, rng);
  for (int64_t& id : ids)
    id = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(std::max<int64_t>(input.classes, 1))));
  if (input.draw == Draw::kDistinct) {
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = 0.05F * static_cast<float>(i) - 1;
    for (size_t i = floats.size(); i > 1; --i) std::swap(floats[i - 1], floats[rng.Below(i)]);
  }
  if (input.draw == Draw::kSimplex) {
    const int64_t width = dims[-1];
    for (int64_t r = 0; r < count; r += width) {
      const float sum = std::accumulate(floats.begin() + r, floats.begin() + r + width, 0.0F);
      std::for_each(floats.begin() + r, floats.begin() + r + width, [&](float& v) { v /= sum; });
    }
  }
  for (OpSession* session : sessions) {
    Tensor* tensor = session->tensor(input.name);
    if (TypeOf(input.draw) == DType::kInt64) {
      std::copy(ids.begin(), ids.end(), tensor->Resize<int64_t>(dims));
    } else if (TypeOf(input.draw) == DType::kBool) {
      std::transform(floats.begin(), floats.end(), tensor->Resize<bool>(dims), [](float value) { return value > 0; });
    } else {
      std::copy(floats.begin(), floats.end(), tensor->Resize<float>(dims));
    }
    if (input.lod) session->SetLod(input.name, lod);
  }
}

}  // namespace millrace
