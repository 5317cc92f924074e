#include <algorithm>
#include <cmath>

#include "ops/grad_input.h"
#include "ops/loss/loss_reduction.h"

namespace millrace {
namespace {

Status InferKlDiv(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta target, context.Input("Target"));
  MR_TRY(ExpectFloats(context, {"X", "Target"}));
  if (x.dims.rank() == 0 || !MayEqual(x.dims, target.dims)) {
    return context.Error("shapes differ: X " + x.dims.ToString() + ", Target " + target.dims.ToString());
  }
  const Result<LossReduction> reduction = ReadLossReduction(context.op());
  if (!reduction.ok()) return context.Error(reduction.status().message());
  if (*reduction != LossReduction::kNone) {
    x.dims = Dims{1};
    x.lod_level = 0;
  }
  context.SetOutput("Loss", x);
  return Status::Ok();
}

/// Forward without Loss@GRAD, backward with it.
class KlDivKernel : public BoundKernel<KlDivKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(target_, context.Input("Target"));
    const bool backward = context.op().info().is_gradient;
    if (backward) {
      MR_ASSIGN(loss_grad_, GradInput::Bind(context, "Loss@GRAD"));
    }
    MR_ASSIGN(out_, context.Output(backward ? "X@GRAD" : "Loss"));
    MR_ASSIGN(reduction_, ReadLossReduction(context.op()));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t count = x_->numel();
    if (target_->numel() != count) {
      return BadData("shapes differ: X " + x_->dims().ToString() + ", Target " + target_->dims().ToString());
    }
    const float* x = x_->data<float>();
    const float* target = target_->data<float>();
    const bool whole = reduction_ == LossReduction::kNone;
    const auto parts =
        static_cast<float>(reduction_ == LossReduction::kMean        ? std::max<int64_t>(count, 1)
                           : reduction_ == LossReduction::kBatchMean ? std::max<int64_t>(x_->dims()[0], 1)
                                                                     : 1);
    if (loss_grad_.bound()) {
      MR_ASSIGN(const float* grad, loss_grad_.Read(whole ? count : 1));
      float* x_grad = ResizeLike(*x_, out_);
      for (int64_t i = 0; i < count; ++i) {
        x_grad[i] = target[i] <= 0 ? 0 : -target[i] * grad[whole ? i : 0] / parts;
      }
      return Status::Ok();
    }
    if (whole) {
      float* loss = ResizeLike(*x_, out_);
      for (int64_t i = 0; i < count; ++i) loss[i] = Part(x[i], target[i]);
      return Status::Ok();
    }
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(Part(x[i], target[i]));
    *out_->Resize<float>({1}) = static_cast<float>(sum / static_cast<double>(parts));
    return Status::Ok();
  }

 private:
  static float Part(float x, float target) { return target <= 0 ? 0 : target * (std::log(target) - x); }

  const Tensor* x_ = nullptr;
  const Tensor* target_ = nullptr;
  GradInput loss_grad_;
  Tensor* out_ = nullptr;
  LossReduction reduction_ = LossReduction::kMean;
};

}  // namespace

void RegisterKldivLoss(OpRegistry& registry) {
  const std::string reduction = "none, mean, sum, or batchmean: the sum over the rows";
  registry.Add("kldiv_loss")
      .Doc(
          "Loss = Target * (log(Target) - X), 0 where Target is not above 0: how far one distribution is from another.")
      .Input("X", "logarithms of probabilities")
      .Input("Target", "probabilities, of the same shape")
      .Output("Loss", "of the same shape, or [1]")
      .Attr("reduction", std::string("mean"), reduction)
      .InferShape(InferKlDiv)
      .Grad({.inputs = {"X", "Target"}, .of = {"Loss"}})
      .Kernel<KlDivKernel>();
  registry.AddGradient("kldiv_loss").Kernel<KlDivKernel>();
}

}  // namespace millrace
