#include "mini_ops.h"
#include "multi_thread_loop.h"
#include "ops/kernel.h"

namespace mini {
namespace {

using millrace::BoundKernel;
using millrace::DType;
using millrace::InferShapeContext;
using millrace::KernelContext;
using millrace::RunContext;
using millrace::Status;
using millrace::Tensor;
using millrace::VarMeta;

constexpr int kThreads = 2;

Status InferMiniDecoder(InferShapeContext& context) {
  MR_ASSIGN(VarMeta in, context.Input("in"));
  MR_TRY(millrace::ExpectDType(context, "in", in, DType::kFloat64));
  if (in.dims.rank() != 2 || !millrace::MayEqual(in.dims[1], 2)) {
    return context.Error("input in: expected two columns, found " + in.dims.ToString());
  }
  in.dims.set(1, 1);
  context.SetOutput("x", in);
  context.SetOutput("y", in);
  return Status::Ok();
}

class MiniDecoderKernel final : public BoundKernel<MiniDecoderKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(in_, context.Input("in"));
    MR_ASSIGN(x_, context.Output("x"));
    MR_ASSIGN(y_, context.Output("y"));
    return Status::Ok();
  }

  Status Run(const RunContext&) override {
    const int64_t records = in_->dims()[0];
    const auto* input = in_->data<double>();
    auto* x = x_->Resize<double>({records, 1});
    auto* y = y_->Resize<double>({records, 1});
    multi_thread_loop_(static_cast<size_t>(records), [&](size_t i) {
      x[i] = input[2 * i];
      y[i] = input[2 * i + 1];
    });
    return Status::Ok();
  }

 private:
  MultiThreadLoop multi_thread_loop_{kThreads};
  const Tensor* in_ = nullptr;
  Tensor* x_ = nullptr;
  Tensor* y_ = nullptr;
};

}  // namespace

void RegisterMiniDecoder(millrace::OpRegistry& registry) {
  registry.Add("mini_decoder")
      .Doc("Splits two columns into one each.")
      .Input("in", "[rows, 2] of type float64")
      .Output("x", "[rows, 1], the first column")
      .Output("y", "[rows, 1], the second column")
      .InferShape(InferMiniDecoder)
      .Kernel<MiniDecoderKernel>();
}

}  // namespace mini
