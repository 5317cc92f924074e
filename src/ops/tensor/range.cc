#include <algorithm>
#include <cmath>

#include "core/numbers.h"
#include "ops/kernel.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

Status InferRange(InferShapeContext& context) {
  MR_ASSIGN(VarMeta start, context.Input("Start"));
  for (const char* name : {"End", "Step"}) {
    MR_ASSIGN(const VarMeta other, context.Input(name));
    MR_TRY(ExpectDType(context, name, other, start.dtype));
  }
  start.dims = Dims{-1};
  start.lod_level = 0;
  context.SetOutput("Out", start);
  return Status::Ok();
}

class RangeKernel : public BoundKernel<RangeKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(start_, context.Input("Start"));
    MR_ASSIGN(end_, context.Input("End"));
    MR_ASSIGN(step_, context.Input("Step"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    return WithType(start_->dtype(), [&](auto sample) -> Status {
      using T = decltype(sample);
      const auto start = static_cast<double>(*start_->data<T>());
      const auto end = static_cast<double>(*end_->data<T>());
      const auto step = static_cast<double>(*step_->data<T>());
      const double count = std::ceil((end - start) / step);
      constexpr double kMost = 1LL << 32;
      if (step == 0 || !(count < kMost)) {
        return BadData("from " + ShortestNumber(start) + " to " + ShortestNumber(end) + " by " + ShortestNumber(step));
      }
      const auto size = static_cast<int64_t>(std::max(count, 0.0));
      T* out = out_->Resize<T>({size});
      for (int64_t i = 0; i < size; ++i) out[i] = ConvertValue<T>(start + step * static_cast<double>(i));
      return Status::Ok();
    });
  }

 private:
  const Tensor* start_ = nullptr;
  const Tensor* end_ = nullptr;
  const Tensor* step_ = nullptr;
  Tensor* out_ = nullptr;
};

/// shape, int32, and size, int64.
Status InferSizes(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta input, context.Input("Input"));
  const bool is_shape = context.op().type() == "shape";
  VarMeta out;
  out.dtype = is_shape ? DType::kInt32 : DType::kInt64;
  out.dims = Dims{is_shape ? input.dims.rank() : 1};
  context.SetOutput("Out", out);
  return Status::Ok();
}

class SizesKernel : public BoundKernel<SizesKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(input_, context.Input("Input"));
    MR_ASSIGN(out_, context.Output("Out"));
    is_shape_ = context.op().type() == "shape";
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = input_->dims();
    if (!is_shape_) {
      *out_->Resize<int64_t>({1}) = dims.numel();
      return Status::Ok();
    }
    auto* out = out_->Resize<int32_t>({dims.rank()});
    for (int axis = 0; axis < dims.rank(); ++axis) out[axis] = ConvertValue<int32_t>(static_cast<double>(dims[axis]));
    return Status::Ok();
  }

 private:
  const Tensor* input_ = nullptr;
  Tensor* out_ = nullptr;
  bool is_shape_ = true;
};

}  // namespace

void RegisterRange(OpRegistry& registry) {
  registry.Add("range")
      .Doc("Start, Start + Step, ... below End.")
      .Input("Start", "[1]")
      .Input("End", "[1], of the same type")
      .Input("Step", "[1], of the same type")
      .Output("Out", "[values]")
      .InferShape(InferRange)
      .Kernel<RangeKernel>();
  registry.Add("shape")
      .Doc("The sizes of Input.")
      .Input("Input", "any shape")
      .Output("Out", "int32 [axes]")
      .InferShape(InferSizes)
      .Kernel<SizesKernel>();
  registry.Add("size")
      .Doc("How many values a tensor has.")
      .Input("Input", "any shape")
      .Output("Out", "int64 [1]")
      .InferShape(InferSizes)
      .Kernel<SizesKernel>();
}

}  // namespace millrace
