#include <algorithm>
#include <cmath>

#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

enum class PoolType : uint8_t { kSum, kAverage, kSqrt, kMax, kFirst, kLast };

Result<PoolType> ParsePoolType(const std::string& name) {
  constexpr std::pair<std::string_view, PoolType> kTypes[] = {
      {"SUM", PoolType::kSum}, {"AVERAGE", PoolType::kAverage}, {"SQRT", PoolType::kSqrt},
      {"MAX", PoolType::kMax}, {"FIRST", PoolType::kFirst},     {"LAST", PoolType::kLast}};
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  for (const auto& [known, type] : kTypes) {
    if (upper == known) return type;
  }
  return InvalidConfig("pooltype is one of SUM, AVERAGE, SQRT, MAX, FIRST, LAST, not \"" + name + "\"");
}

/// What the values of a sequence are multiplied by.
float Factor(PoolType type, int64_t length) {
  if (type == PoolType::kAverage) return 1 / static_cast<float>(length);
  if (type == PoolType::kSqrt) return 1 / std::sqrt(static_cast<float>(length));
  return 1;
}

Status InferPool(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (const auto type = ParsePoolType(context.op().String("pooltype")); !type.ok()) {
    return context.Error(type.status().message());
  }
  const std::string name = InputArguments(context.op().desc(), "X")[0];
  if (x.lod_level == 0) return context.Error("input X (\"" + name + "\") has no sequences (lod_level 0)");
  if (x.dims.rank() < 2) return context.Error("input X " + Shown(name, x.dims) + " must have two axes");
  VarMeta out = x;
  out.lod_level = 0;
  out.dims.set(0, -1);
  context.SetOutput("Out", out);
  out.dtype = DType::kInt32;
  context.SetOutput("MaxIndex", out);
  return Status::Ok();
}

class SequencePoolKernel : public BoundKernel<SequencePoolKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(max_index_, context.OptionalOutput("MaxIndex"));
    MR_ASSIGN(type_, ParsePoolType(context.op().String("pooltype")));
    pad_ = context.op().Float("pad_value");
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckSequences(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const auto rows = static_cast<int64_t>(lod.size()) - 1;
    Dims dims = x_->dims();
    const int64_t width = dims.Product(1, dims.rank());
    dims.set(0, rows);
    const float* x = x_->data<float>();
    float* out = out_->Resize<float>(dims);
    int32_t* index = nullptr;
    if (max_index_ != nullptr && type_ == PoolType::kMax) index = max_index_->Resize<int32_t>(dims);
    for (int64_t i = 0; i < rows; ++i, out += width) {
      const int64_t begin = lod[static_cast<size_t>(i)];
      const int64_t end = lod[static_cast<size_t>(i) + 1];
      if (begin == end) {
        std::fill_n(out, width, pad_);
      } else if (type_ == PoolType::kMax) {
        Max(x, begin, end, width, out, index == nullptr ? nullptr : index + i * width);
        continue;
      } else if (type_ == PoolType::kFirst || type_ == PoolType::kLast) {
        std::copy_n(x + (type_ == PoolType::kFirst ? begin : end - 1) * width, width, out);
      } else {
        AddUp(x, begin, end, width, out);
      }
      if (index != nullptr) std::fill_n(index + i * width, width, -1);
    }
    return Status::Ok();
  }

 private:
  void AddUp(const float* x, int64_t begin, int64_t end, int64_t width, float* out) const {
    std::copy_n(x + begin * width, width, out);
    for (int64_t r = begin + 1; r < end; ++r) {
      for (int64_t j = 0; j < width; ++j) out[j] += x[r * width + j];
    }
    const float factor = Factor(type_, end - begin);
    if (factor == 1) return;
    for (int64_t j = 0; j < width; ++j) out[j] *= factor;
  }
  /// NaN is above every number.
  static bool IsAbove(float value, float best) { return !(value <= best) && !std::isnan(best); }
  static void Max(const float* x, int64_t begin, int64_t end, int64_t width, float* out, int32_t* index) {
    for (int64_t j = 0; j < width; ++j) {
      int64_t best = begin;
      for (int64_t r = begin + 1; r < end; ++r) best = IsAbove(x[r * width + j], x[best * width + j]) ? r : best;
      out[j] = x[best * width + j];
      if (index != nullptr) index[j] = static_cast<int32_t>(best);
    }
  }

  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  Tensor* max_index_ = nullptr;
  PoolType type_ = PoolType::kSum;
  float pad_ = 0;
  std::string name_;
};

class SequencePoolGradKernel : public BoundKernel<SequencePoolGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    MR_ASSIGN(type_, ParsePoolType(context.op().String("pooltype")));
    if (type_ == PoolType::kMax) {
      MR_ASSIGN(max_index_, GradInput::Bind(context, "MaxIndex"));
    }
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckSequences(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const int64_t width = x_->dims().Product(1, x_->dims().rank());
    const auto pooled = (static_cast<int64_t>(lod.size()) - 1) * width;
    MR_ASSIGN(const float* grad, out_grad_.Read(pooled));
    const int32_t* index = nullptr;
    if (type_ == PoolType::kMax) {
      MR_ASSIGN(index, max_index_.Read<int32_t>(pooled));
    }
    float* x_grad = ResizeLike(*x_, x_grad_);
    const bool sparse = type_ == PoolType::kMax || type_ == PoolType::kFirst || type_ == PoolType::kLast;
    if (sparse) std::fill_n(x_grad, x_->numel(), 0.0F);
    for (size_t i = 0; i + 1 < lod.size(); ++i, grad += width) {
      const int64_t begin = lod[i];
      const int64_t end = lod[i + 1];
      if (begin == end) continue;
      if (type_ == PoolType::kMax) {
        const int32_t* rows = index + static_cast<int64_t>(i) * width;
        for (int64_t j = 0; j < width; ++j) {
          if (rows[j] < begin || rows[j] >= end) return InvalidConfig("input MaxIndex was not made from X");
          x_grad[rows[j] * width + j] += grad[j];
        }
      } else if (sparse) {
        std::copy_n(grad, width, x_grad + (type_ == PoolType::kFirst ? begin : end - 1) * width);
      } else {
        const float factor = Factor(type_, end - begin);
        for (int64_t r = begin; r < end; ++r) {
          for (int64_t j = 0; j < width; ++j) x_grad[r * width + j] = grad[j] * factor;
        }
      }
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  GradInput out_grad_;
  GradInput max_index_;
  Tensor* x_grad_ = nullptr;
  PoolType type_ = PoolType::kSum;
  std::string name_;
};

}  // namespace

void RegisterSequencePool(OpRegistry& registry) {
  const std::string type = "SUM, AVERAGE, SQRT (sum over the root of the length), MAX, FIRST or LAST";
  registry.Add("sequence_pool")
      .Apart()
      .Doc("Pools the rows of each sequence into one.")
      .Input("X", "[values, width] with LoD")
      .Output("Out", "[sequences, width]")
      .OptionalOutput("MaxIndex", "rows that MAX took, -1 for empty sequences")
      .Attr("pooltype", std::string("AVERAGE"), type)
      .Attr("pad_value", 0.0F, "what an empty sequence gives")
      .Attr("is_test", false, "as Paddle writes it; changes nothing here")
      .InferShape(InferPool)
      .Grad({.inputs = {"X"}, .outputs = {"MaxIndex"}, .optional = {"MaxIndex"}})
      .Kernel<SequencePoolKernel>();
  registry.AddGradient("sequence_pool")
      .TakesUnwritten()  // only MAX writes MaxIndex
      .Kernel<SequencePoolGradKernel>();
}

}  // namespace millrace
