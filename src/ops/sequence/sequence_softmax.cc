#include "kernels/softmax_row.h"
#include "ops/grad_input.h"
#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

Status InferSequenceSoftmax(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(ExpectSequences(context, "X", x));
  if (x.dims.rank() < 1 || KnownProduct(x.dims, 1, x.dims.rank()) > 1) {
    return context.Error("X " + x.dims.ToString() + " must hold one value a row");
  }
  context.SetOutput("Out", x);
  return Status::Ok();
}

Status CheckOneValueARow(const std::string& name, const Tensor& x) {
  MR_TRY(CheckSequences(name, x));
  if (x.numel() == x.dims()[0]) return Status::Ok();
  return BadData(Shown(name, x.dims()) + " must hold one value a row");
}

class SequenceSoftmaxKernel : public BoundKernel<SequenceSoftmaxKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckOneValueARow(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const float* x = x_->data<float>();
    float* out = ResizeLike(*x_, out_);
    for (size_t i = 0; i + 1 < lod.size(); ++i) SoftmaxRow(x + lod[i], lod[i + 1] - lod[i], out + lod[i]);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  std::string name_;
};

class SequenceSoftmaxGradKernel : public BoundKernel<SequenceSoftmaxGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, GradInput::Bind(context, "Out"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckOneValueARow(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    MR_ASSIGN(const float* out, out_.Read(x_->numel()));
    MR_ASSIGN(const float* grad, out_grad_.Read(x_->numel()));
    float* x_grad = ResizeLike(*x_, x_grad_);
    for (size_t i = 0; i + 1 < lod.size(); ++i) {
      SoftmaxGradRow(out + lod[i], grad + lod[i], lod[i + 1] - lod[i], x_grad + lod[i]);
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  GradInput out_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  std::string name_;
};

}  // namespace

void RegisterSequenceSoftmax(OpRegistry& registry) {
  registry.Add("sequence_softmax")
      .Doc("The softmax of each sequence's values.")
      .Input("X", "[values, 1] with LoD")
      .Output("Out", "like X")
      .Attr("data_format", std::string("AnyLayout"), "as Paddle writes it; changes nothing here")
      .InferShape(InferSequenceSoftmax)
      .Grad({.inputs = {"X"}, .outputs = {"Out"}})
      .Kernel<SequenceSoftmaxKernel>();
  registry.AddGradient("sequence_softmax").Kernel<SequenceSoftmaxGradKernel>();
}

}  // namespace millrace
