#pragma once

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/math/reduction.h"

namespace millrace {

/// Gradient of a reduction whose slope by a value, F::Slope(x, out), is found from that and from the result.
template <class F>
class SlopeGradKernel : public BoundKernel<SlopeGradKernel<F>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, GradInput::Bind(context, "Out"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    reduction_ = Reduction::Of(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const int64_t count = reduction_.OutDims(x_.dims()).numel();
    MR_ASSIGN(const float* out, out_.Read(count));
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* x_grad = ResizeLike(x_.tensor(), x_grad_);
    ReductionWalk(x_.dims(), reduction_).ForEachRun([&](int64_t at, int64_t width, int64_t from, int64_t stride) {
      for (int64_t i = 0; i < width; ++i) {
        x_grad[at + i] = F::Slope(x[at + i], out[from + i * stride]) * grad[from + i * stride];
      }
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput out_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Reduction reduction_;
};

}  // namespace millrace
