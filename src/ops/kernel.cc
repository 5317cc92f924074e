#include "ops/kernel.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace millrace {
namespace {

OpBuilder AddGradientOf(OpRegistry& registry, const std::string& type, std::initializer_list<const char*> forward) {
  OpBuilder op = registry.Add(type + "_grad");
  for (const char* name : forward) op.Input(name, "of the forward operator");
  return op.Doc("Gradient of " + type + ".").Input("Out@GRAD", "gradient of Out").InferShape(InferGradients).Gradient();
}

}  // namespace

Status InferGradients(InferShapeContext& context) {
  constexpr std::string_view kSuffix = "@GRAD";
  for (const OpDesc::Var& output : context.op().desc().outputs()) {
    if (output.arguments_size() == 0) continue;  // how Paddle writes a gradient that nobody wants
    std::string of = output.parameter();
    if (of.size() > kSuffix.size() && of.ends_with(kSuffix)) of.resize(of.size() - kSuffix.size());
    const std::array<std::string, 3> sources = {of, "Out", "Out@GRAD"};
    const auto source = std::find_if(sources.begin(), sources.end(),
                                     [&](const std::string& parameter) { return context.HasInput(parameter); });
    if (source == sources.end()) {
      return context.Error("the shape of " + output.parameter() + " is that of " + of +
                           ", Out or Out@GRAD, and none of them is bound");
    }
    MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs(*source));
    for (int i = 0; i < output.arguments_size(); ++i) {
      VarMeta meta = metas[static_cast<size_t>(i) < metas.size() ? static_cast<size_t>(i) : 0];
      context.SetOutput(output.parameter(), meta, i);
    }
  }
  return Status::Ok();
}

Status KeepOutputs(InferShapeContext&) { return Status::Ok(); }

std::vector<OpDesc> GradFromX(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("X")) return {};
  return {context.GradOp({"X"}, {}, {"Out"}, {"X"})};
}

std::vector<OpDesc> GradFromOut(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("X")) return {};
  return {context.GradOp({}, {"Out"}, {"Out"}, {"X"})};
}

std::vector<OpDesc> GradFromXAndOut(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("X")) return {};
  return {context.GradOp({"X"}, {"Out"}, {"Out"}, {"X"})};
}

std::vector<OpDesc> GradsFromXAndY(const GradContext& context) {
  if (!context.Has("Out") || !(context.Wants("X") || context.Wants("Y"))) return {};
  return {context.GradOp({"X", "Y"}, {}, {"Out"}, {"X", "Y"})};
}

OpBuilder AddGradFromX(OpRegistry& registry, const std::string& type) {
  return AddGradientOf(registry, type, {"X"}).Output("X@GRAD", "gradient of X");
}

OpBuilder AddGradFromXAndOut(OpRegistry& registry, const std::string& type) {
  return AddGradientOf(registry, type, {"X", "Out"}).Output("X@GRAD", "gradient of X");
}

OpBuilder AddGradsFromXAndY(OpRegistry& registry, const std::string& type) {
  return AddGradientOf(registry, type, {"X", "Y"})
      .OptionalOutput("X@GRAD", "gradient of X")
      .OptionalOutput("Y@GRAD", "gradient of Y");
}

Status ExpectDType(const InferShapeContext& context, std::string_view parameter, const VarMeta& meta, DType dtype) {
  if (meta.dtype == dtype) return Status::Ok();
  const std::vector<std::string> names = InputArguments(context.op().desc(), parameter);
  return context.Error("input " + std::string(parameter) + " (\"" + (names.empty() ? "" : names[0]) + "\") must be " +
                       std::string(DTypeName(dtype)) + ", but is " + std::string(DTypeName(meta.dtype)));
}

bool MayEqual(const Dims& a, const Dims& b) {
  if (a.rank() != b.rank()) return false;
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (!MayEqual(a[axis], b[axis])) return false;
  }
  return true;
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
