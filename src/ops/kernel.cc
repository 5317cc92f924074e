#include "ops/kernel.h"

namespace millrace {

Status KeepOutputs(InferShapeContext&) { return Status::Ok(); }

Status ExpectDType(const InferShapeContext& context, std::string_view parameter, const VarMeta& meta, DType dtype) {
  if (meta.dtype == dtype) return Status::Ok();
  const std::vector<std::string> names = InputArguments(context.op().desc(), parameter);
  // Of several arguments the first of another type is complained of.
  size_t at = 0;
  if (const auto metas = context.Inputs(parameter); metas.ok()) {
    while (at + 1 < metas->size() && (*metas)[at].dtype == dtype) ++at;
  }
  return context.Error("input " + std::string(parameter) + " (\"" + (at < names.size() ? names[at] : "") +
                       "\") must be " + std::string(DTypeName(dtype)) + ", but is " +
                       std::string(DTypeName(meta.dtype)));
}

Status ExpectFloats(const InferShapeContext& context, const std::vector<std::string_view>& parameters) {
  for (const std::string_view parameter : parameters) {
    if (!context.HasInput(parameter)) continue;
    MR_ASSIGN(const VarMeta meta, context.Input(parameter));
    MR_TRY(ExpectDType(context, parameter, meta, DType::kFloat32));
  }
  return Status::Ok();
}

Status ExpectFloats(const InferShapeContext& context, const std::vector<std::string_view>& parameters, int64_t count) {
  MR_TRY(ExpectFloats(context, parameters));
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  for (const std::string_view parameter : parameters) {
    if (!context.HasInput(parameter)) continue;
    MR_ASSIGN(const VarMeta meta, context.Input(parameter));
    if (MayEqual(KnownProduct(meta.dims, 0, meta.dims.rank()), count)) continue;
    return context.Error(std::string(parameter) + " " + meta.dims.ToString() + " does not fit X " + x.dims.ToString());
  }
  return Status::Ok();
}

int64_t KnownProduct(const Dims& dims, int begin, int end) {
  int64_t product = 1;
  for (int axis = begin; axis < end; ++axis) {
    if (dims[axis] < 0 || __builtin_mul_overflow(product, dims[axis], &product)) return -1;
  }
  return product;
}

Result<int> FrontAxis(const InferShapeContext& context, int64_t axis, int rank) {
  const int64_t front = axis < 0 ? axis + rank : axis;
  if (front < 0 || front >= rank) {
    return context.Error("axis " + std::to_string(axis) + " of a tensor of " + std::to_string(rank) + " axes");
  }
  return static_cast<int>(front);
}

Status InferAlongAxis(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(FrontAxis(context, context.op().Int("axis"), x.dims.rank()).status());
  context.SetOutput("Out", x);
  return Status::Ok();
}

std::string Shown(std::string_view name, const Dims& dims) {
  return "\"" + std::string(name) + "\" " + dims.ToString();
}

float* ResizeLike(const Tensor& like, Tensor* to) {
  const Dims dims = like.dims();
  const std::span<const uint32_t> lod = like.lod();
  float* values = to->Resize<float>(dims);
  to->set_lod(lod);
  return values;
}

}  // namespace millrace
