#include <algorithm>
#include <cmath>

#include "kernels/lane_sums.h"
#include "kernels/not_a_number.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/math/reduction.h"

namespace millrace {
namespace {

enum class SumKind : uint8_t { kSum, kMean, kSquaredNorm, kAbsoluteNorm };

struct SumRule {
  SumKind kind = SumKind::kSum;
  Reduction reduction;

  static SumRule Of(const OpView& op) {
    const std::string& type = op.type();
    if (type.starts_with("mean")) return {SumKind::kMean, {}};
    if (type.starts_with("squared_l2_norm")) return {SumKind::kSquaredNorm, {}};
    if (type.starts_with("l1_norm")) return {SumKind::kAbsoluteNorm, {}};
    return {type.starts_with("reduce_mean") ? SumKind::kMean : SumKind::kSum, Reduction::Of(op)};
  }
};

/// The sum of what `count` values add to it.
double SumOf(SumKind kind, const float* x, int64_t count) {
  if (kind == SumKind::kSquaredNorm) return LaneSums().squares(x, count, 0);
  return kind == SumKind::kAbsoluteNorm ? LaneSums().absolutes(x, count) : LaneSums().values(x, count);
}

float Slope(SumKind kind, float value) {
  if (kind == SumKind::kSquaredNorm) return 2 * value;
  return SignOrNan(value);
}

/// Sums of whole numbers, such as lengths, are whole.
Status InferWholeSum(InferShapeContext& context, VarMeta out) {
  const Reduction reduction = Reduction::Of(context.op());
  MR_TRY(InferReduction(context, reduction));
  const int64_t type = context.op().Int("out_dtype");
  if (type == VarType::INT64 || out.dtype == DType::kBool) out.dtype = DType::kInt64;
  const bool is_own = type == -1 || type == VarType::INT64 || (type == VarType::INT32 && out.dtype == DType::kInt32);
  if (!is_own)
    return context.Error("out_dtype of whole numbers is " + std::to_string(type) + "; supported is int64 (3)");
  if (reduction.Drops(0, out.dims.rank())) out.lod_level = 0;
  out.dims = reduction.OutDims(out.dims);
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferReduce(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  const bool is_whole = x.dtype == DType::kInt64 || x.dtype == DType::kInt32 || x.dtype == DType::kBool;
  if (is_whole && context.op().type() == "reduce_sum") return InferWholeSum(context, x);
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (context.op().info().FindAttr("out_dtype") != nullptr) {
    const int64_t type = context.op().Int("out_dtype");
    if (type != -1 && type != VarType::FP32)
      return context.Error("out_dtype is " + std::to_string(type) + "; only float32 (5) is supported");
  }
  return InferReduction(context, SumRule::Of(context.op()).reduction);
}

class ReduceKernel : public BoundKernel<ReduceKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    rule_ = SumRule::Of(context.op());
    if (context.op().info().FindAttr("out_dtype") != nullptr) {
      keeps_int32_ = context.op().Int("out_dtype") != VarType::INT64;
    }
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    switch (x_.tensor().dtype()) {
      case DType::kInt64: return AddWhole<int64_t>();
      case DType::kInt32: return AddWhole<int32_t>();
      case DType::kBool: return AddWhole<bool>();
      default: return AddFloats();
    }
  }

 private:
  Status AddFloats() {
    const float* x = x_.Read();
    const Dims x_dims = x_.dims();
    const std::span<const uint32_t> lod = x_.tensor().lod();
    const Dims dims = rule_.reduction.OutDims(x_dims);
    const int64_t count = dims.numel();
    // Sums in double: a mean over a large batch is as exact as the values.
    double* sums = sums_.Resize<double>(dims);
    std::fill_n(sums, count, 0.0);
    ReductionWalk(x_dims, rule_.reduction).ForEachRun([&](int64_t at, int64_t width, int64_t out, int64_t stride) {
      if (stride != 0) {
        for (int64_t i = 0; i < width; ++i) sums[out + i] += static_cast<double>(x[at + i]);
        return;
      }
      sums[out] += SumOf(rule_.kind, x + at, width);
    });
    const int64_t per_sum = count == 0 ? 1 : std::max<int64_t>(x_dims.numel() / count, 1);
    const double divisor = rule_.kind == SumKind::kMean ? static_cast<double>(per_sum) : 1.0;
    float* out = out_->Resize<float>(dims);
    if (!rule_.reduction.Drops(0, x_dims.rank())) out_->set_lod(lod);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(sums[i] / divisor);
    return Status::Ok();
  }

  /// Sums wrap where they overflow, as Paddle's do.
  template <class T>
  Status AddWhole() {
    const Dims dims = rule_.reduction.OutDims(x_.dims());
    const T* x = x_.tensor().template data<T>();
    whole_.assign(static_cast<size_t>(dims.numel()), 0);
    uint64_t* sums = whole_.data();
    ReductionWalk(x_.dims(), rule_.reduction).ForEachRun([&](int64_t at, int64_t width, int64_t out, int64_t stride) {
      for (int64_t i = 0; i < width; ++i) {
        sums[out + i * stride] += static_cast<uint64_t>(static_cast<int64_t>(x[at + i]));
      }
    });
    if (keeps_int32_ && x_.tensor().dtype() == DType::kInt32) {
      int32_t* out = out_->Resize<int32_t>(dims);
      for (size_t i = 0; i < whole_.size(); ++i) out[i] = static_cast<int32_t>(whole_[i]);
    } else {
      int64_t* out = out_->Resize<int64_t>(dims);
      for (size_t i = 0; i < whole_.size(); ++i) out[i] = static_cast<int64_t>(whole_[i]);
    }
    return Status::Ok();
  }

  FloatInput x_;
  Tensor* out_ = nullptr;
  Tensor sums_;
  std::vector<uint64_t> whole_;
  bool keeps_int32_ = false;
  SumRule rule_;
};

class ReduceGradKernel : public BoundKernel<ReduceGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    rule_ = SumRule::Of(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t sums = rule_.reduction.OutDims(x_.dims()).numel();
    MR_ASSIGN(const float* grad, out_grad_.Read(sums));
    const auto per_sum = static_cast<float>(std::max<int64_t>(x_.tensor().numel() / std::max<int64_t>(sums, 1), 1));
    const float factor = rule_.kind == SumKind::kMean ? 1 / per_sum : 1;
    const bool sloped = rule_.kind == SumKind::kSquaredNorm || rule_.kind == SumKind::kAbsoluteNorm;
    const float* x = sloped ? x_.Read() : nullptr;
    float* x_grad = ResizeLike(x_.tensor(), x_grad_);
    ReductionWalk(x_.dims(), rule_.reduction).ForEachRun([&](int64_t at, int64_t width, int64_t out, int64_t stride) {
      for (int64_t i = 0; i < width; ++i) {
        const float g = grad[out + i * stride] * factor;
        x_grad[at + i] = sloped ? Slope(rule_.kind, x[at + i]) * g : g;
      }
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  SumRule rule_;
};

void RegisterSumOf(OpRegistry& registry, const std::string& type, const std::string& doc, bool axes) {
  OpBuilder forward = registry.Add(type);
  forward.Doc(doc)
      .Input("X", "any shape")
      .Output("Out", "without the reduced axes; [1] when none is left")
      .InferShape(InferReduce)
      .Grad({.inputs = {"X"}})
      .Kernel<ReduceKernel>();
  if (axes) AddReductionAttrs(forward);
  registry.AddGradient(type).Kernel<ReduceGradKernel>();
}

}  // namespace

void RegisterReduce(OpRegistry& registry) {
  RegisterSumOf(registry, "mean", "Out = the mean of all values, [1].", false);
  RegisterSumOf(registry, "squared_l2_norm", "Out = the sum of the squares of all values, [1].", false);
  RegisterSumOf(registry, "l1_norm", "Out = the sum of all absolute values, [1].", false);
  RegisterSumOf(registry, "reduce_sum", "Sums along axes.", true);
  RegisterSumOf(registry, "reduce_mean", "Means along axes.", true);
}

}  // namespace millrace
