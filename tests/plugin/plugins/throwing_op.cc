// An operator that throws where its attribute says.

#include <stdexcept>

#include "ops/kernel.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

void ThrowAt(const OpView& op, const char* where) {
  if (op.String("where") == where) throw std::out_of_range(std::string("thrown at ") + where);
}

class ThrowingKernel : public BoundKernel<ThrowingKernel> {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    if (context.op().String("where") == "no kernel") return Result<std::unique_ptr<OpKernel>>(nullptr);
    return BoundKernel<ThrowingKernel>::Create(context);
  }
  Status Bind(KernelContext& context) {
    ThrowAt(context.op(), "bind");
    throws_ = context.op().String("where") == "run";
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (throws_) throw 7;
    out_->ViewOf(*x_, x_->dims());
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  bool throws_ = false;
};

Status InferThrowing(InferShapeContext& context) {
  ThrowAt(context.op(), "infer");
  return SameAsX(context);
}

std::vector<OpDesc> GradThrowing(const GradContext& context) {
  ThrowAt(context.op(), "grad");
  return {};
}

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  registries.ops.Add("throwing")
      .Doc("Throws.")
      .Input("X", "any shape")
      .Output("Out", "X")
      .Attr("where", std::string("run"), "infer, grad, bind or run")
      .InferShape(InferThrowing)
      .Grad(GradThrowing)
      .Kernel<ThrowingKernel>();
  return Status::Ok();
}
