#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferSize(InferShapeContext& context) {
  MR_TRY(context.Input("Input").status());
  VarMeta out;
  out.dtype = DType::kInt64;
  out.dims = Dims{1};
  context.SetOutput("Out", out);
  return Status::Ok();
}

class SizeKernel : public BoundKernel<SizeKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(input_, context.Input("Input"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t count = input_->numel();
    *out_->Resize<int64_t>({1}) = count;
    return Status::Ok();
  }

 private:
  const Tensor* input_ = nullptr;
  Tensor* out_ = nullptr;
};

}  // namespace

void RegisterSize(OpRegistry& registry) {
  registry.Add("size")
      .Doc("How many values a tensor has.")
      .Input("Input", "any shape")
      .Output("Out", "int64 [1]")
      .InferShape(InferSize)
      .Kernel<SizeKernel>();
}

}  // namespace millrace
