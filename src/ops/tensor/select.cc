#include <algorithm>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

/// As MayEqual; one value may also have one axis or none: Paddle 2.6 declares [], Paddle 1 and our operators make [1].
bool MayEqualOrBeOneValue(const Dims& a, const Dims& b) {
  if (a.rank() + b.rank() == 1) return MayEqual((a.rank() == 1 ? a : b)[0], 1);
  return MayEqual(a, b);
}

Status InferWhere(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta condition, context.Input("Condition"));
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta y, context.Input("Y"));
  MR_TRY(ExpectDType(context, "Condition", condition, DType::kBool));
  MR_TRY(ExpectDType(context, "Y", y, x.dtype));
  if (!MayEqualOrBeOneValue(condition.dims, x.dims) || !MayEqualOrBeOneValue(x.dims, y.dims)) {
    return context.Error("shapes differ: Condition " + condition.dims.ToString() + ", X " + x.dims.ToString() + ", Y " +
                         y.dims.ToString());
  }
  context.SetOutput("Out", x);
  return Status::Ok();
}

class WhereKernel : public BoundKernel<WhereKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(condition_, context.Input("Condition"));
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.Input("Y"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_->dims();
    if (!MayEqualOrBeOneValue(condition_->dims(), dims) || !MayEqualOrBeOneValue(y_->dims(), dims)) {
      return BadData("shapes differ: Condition " + condition_->dims().ToString() + ", X " + dims.ToString() + ", Y " +
                     y_->dims().ToString());
    }
    const bool* condition = condition_->data<bool>();
    const int64_t count = dims.numel();
    WithType(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = x_->data<T>();
      const T* y = y_->data<T>();
      T* out = out_->Resize<T>(dims);
      for (int64_t i = 0; i < count; ++i) out[i] = condition[i] ? x[i] : y[i];
    });
    return Status::Ok();
  }

 private:
  const Tensor* condition_ = nullptr;
  const Tensor* x_ = nullptr;
  const Tensor* y_ = nullptr;
  Tensor* out_ = nullptr;
};

class WhereGradKernel : public BoundKernel<WhereGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(condition_, context.Input("Condition"));
    MR_ASSIGN(out_grad_, context.Input("Out@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(y_grad_, context.OptionalOutput("Y@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (condition_->numel() != out_grad_->numel()) {
      return InvalidConfig("Condition " + condition_->dims().ToString() + " does not fit Out@GRAD " +
                           out_grad_->dims().ToString());
    }
    const bool* condition = condition_->data<bool>();
    const float* grad = out_grad_->data<float>();
    const int64_t count = out_grad_->numel();
    float* x_grad = x_grad_ == nullptr ? nullptr : x_grad_->Resize<float>(out_grad_->dims());
    float* y_grad = y_grad_ == nullptr ? nullptr : y_grad_->Resize<float>(out_grad_->dims());
    for (int64_t i = 0; x_grad != nullptr && i < count; ++i) x_grad[i] = condition[i] ? grad[i] : 0;
    for (int64_t i = 0; y_grad != nullptr && i < count; ++i) y_grad[i] = condition[i] ? 0 : grad[i];
    return Status::Ok();
  }

 private:
  const Tensor* condition_ = nullptr;
  const Tensor* out_grad_ = nullptr;
  Tensor* x_grad_ = nullptr;
  Tensor* y_grad_ = nullptr;
};

Status InferMaskedSelect(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta mask, context.Input("Mask"));
  MR_TRY(ExpectDType(context, "Mask", mask, DType::kBool));
  if (!MayEqual(x.dims, mask.dims)) {
    return context.Error("shapes differ: X " + x.dims.ToString() + ", Mask " + mask.dims.ToString());
  }
  x.dims = Dims{-1};
  x.lod_level = 0;
  context.SetOutput("Y", x);
  return Status::Ok();
}

class MaskedSelectKernel : public BoundKernel<MaskedSelectKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(mask_, context.Input("Mask"));
    MR_ASSIGN(y_, context.Output("Y"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (!(mask_->dims() == x_->dims())) {
      return BadData("shapes differ: X " + x_->dims().ToString() + ", Mask " + mask_->dims().ToString());
    }
    const bool* mask = mask_->data<bool>();
    const int64_t count = x_->numel();
    WithType(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = x_->data<T>();
      T* y = y_->Resize<T>({std::count(mask, mask + count, true)});
      for (int64_t i = 0; i < count; ++i) {
        if (mask[i]) *y++ = x[i];
      }
    });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* mask_ = nullptr;
  Tensor* y_ = nullptr;
};

class MaskedSelectGradKernel : public BoundKernel<MaskedSelectGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(mask_, context.Input("Mask"));
    MR_ASSIGN(y_grad_, GradInput::Bind(context, "Y@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const bool* mask = mask_->data<bool>();
    const int64_t count = mask_->numel();
    MR_ASSIGN(const float* grad, y_grad_.Read(std::count(mask, mask + count, true)));
    float* x_grad = x_grad_->Resize<float>(mask_->dims());
    for (int64_t i = 0; i < count; ++i) x_grad[i] = mask[i] ? *grad++ : 0;
    return Status::Ok();
  }

 private:
  const Tensor* mask_ = nullptr;
  GradInput y_grad_;
  Tensor* x_grad_ = nullptr;
};

}  // namespace

void RegisterSelect(OpRegistry& registry) {
  registry.Add("where")
      .Doc("Out = X where Condition is true, else Y.")
      .Input("Condition", "bool, of the shape of X")
      .Input("X", "any shape")
      .Input("Y", "of the shape and type of X")
      .Output("Out", "the shape of X")
      .InferShape(InferWhere)
      .Grad({.inputs = {"Condition", "X", "Y"}, .to = {"X", "Y"}})
      .Kernel<WhereKernel>();
  registry.AddGradient("where").Kernel<WhereGradKernel>();
  registry.Add("masked_select")
      .Apart()
      .Doc("The values of X where Mask is true, one after another.")
      .Input("X", "any shape")
      .Input("Mask", "bool, of the shape of X")
      .Output("Y", "[values]")
      .InferShape(InferMaskedSelect)
      .Grad({.inputs = {"X", "Mask"}, .of = {"Y"}})
      .Kernel<MaskedSelectKernel>();
  registry.AddGradient("masked_select").Kernel<MaskedSelectGradKernel>();
}

}  // namespace millrace
