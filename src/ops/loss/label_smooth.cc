#include "ops/float_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferLabelSmooth(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (x.dims.rank() == 0) return context.Error("X has no axes");
  if (context.HasInput("PriorDist")) {
    MR_ASSIGN(const VarMeta prior, context.Input("PriorDist"));
    MR_TRY(ExpectDType(context, "PriorDist", prior, DType::kFloat32));
    if (!MayEqual(KnownProduct(prior.dims, 0, prior.dims.rank()), x.dims[-1])) {
      return context.Error("PriorDist " + prior.dims.ToString() + " does not have a share for each class of X " +
                           x.dims.ToString());
    }
  }
  context.SetOutput("Out", x);
  return Status::Ok();
}

class LabelSmoothKernel : public BoundKernel<LabelSmoothKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(prior_, FloatInput::BindOptional(context, "PriorDist"));
    MR_ASSIGN(out_, context.Output("Out"));
    epsilon_ = context.op().Float("epsilon");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (x_.dims().rank() == 0) return InvalidConfig("X has no axes");
    const float* x = x_.Read();
    const int64_t count = x_.tensor().numel();
    const int64_t classes = x_.dims()[-1];
    MR_TRY(prior_.Expect(classes));
    const float* prior = prior_.bound() ? prior_.Read() : nullptr;
    const float even = epsilon_ / static_cast<float>(classes);
    float* out = ResizeLike(x_.tensor(), out_);
    for (int64_t i = 0; i < count; ++i) {
      out[i] = (1 - epsilon_) * x[i] + (prior == nullptr ? even : epsilon_ * prior[i % classes]);
    }
    return Status::Ok();
  }

 private:
  FloatInput x_;
  FloatInput prior_;
  Tensor* out_ = nullptr;
  float epsilon_ = 0;
};

class LabelSmoothGradKernel : public BoundKernel<LabelSmoothGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_grad_, context.Input("Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    epsilon_ = context.op().Float("epsilon");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* grad = out_grad_->data<float>();
    const int64_t count = out_grad_->numel();
    float* x_grad = ResizeLike(*out_grad_, x_grad_);
    for (int64_t i = 0; i < count; ++i) x_grad[i] = (1 - epsilon_) * grad[i];
    return Status::Ok();
  }

 private:
  const Tensor* out_grad_ = nullptr;
  Tensor* x_grad_ = nullptr;
  float epsilon_ = 0;
};

}  // namespace

void RegisterLabelSmooth(OpRegistry& registry) {
  const std::string epsilon = "share that is taken from the label";
  registry.Add("label_smooth")
      .Doc("Out = (1 - epsilon) X + epsilon PriorDist: no class is certain.")
      .Input("X", "[..., classes]")
      .OptionalInput("PriorDist", "[1, classes]; 1 / classes without it")
      .Output("Out", "shape of X")
      .Attr("epsilon", 0.0F, epsilon)
      .InferShape(InferLabelSmooth)
      .Grad(GradArgs{})
      .Kernel<LabelSmoothKernel>();
  registry.AddGradient("label_smooth").Kernel<LabelSmoothGradKernel>();
}

}  // namespace millrace
