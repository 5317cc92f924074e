#include "ops/copy_tensor.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

class AssignKernel : public BoundKernel<AssignKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (x_ == out_) return Status::Ok();
    CopyTensor(*x_, out_);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
};

std::vector<OpDesc> AssignGrad(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("X")) return {};
  const OpDesc names = context.GradOp({}, {}, {"Out"}, {"X"});
  OpDesc grad;
  grad.set_type("assign");
  SetInput(grad, "X", InputArguments(names, "Out@GRAD"));
  SetOutput(grad, "Out", OutputArguments(names, "X@GRAD"));
  return {grad};
}

}  // namespace

void RegisterAssign(OpRegistry& registry) {
  registry.Add("assign")
      .Doc("Out = a copy of X.")
      .Input("X", "a tensor")
      .Output("Out", "like X")
      .InferShape(SameAsX)
      .Grad(AssignGrad)
      .Kernel<AssignKernel>();
  // How Paddle 2 writes Variable.detach(), the start of a part that is not trained through.
  registry.Add("share_data")
      .Doc("Out = a copy of X, through which no gradient flows.")
      .Input("X", "a tensor")
      .Output("Out", "like X")
      .InferShape(SameAsX)
      .Kernel<AssignKernel>();
}

}  // namespace millrace
