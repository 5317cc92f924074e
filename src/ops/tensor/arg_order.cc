#include <algorithm>
#include <cmath>

#include "kernels/not_a_number.h"
#include "ops/axis_lines.h"
#include "ops/kernel.h"
#include "ops/number_types.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

Status InferArg(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(FrontAxis(context, context.op().Int("axis"), x.dims.rank()).status());
  const int64_t type = context.op().Int("dtype");
  if (type != VarType::INT64 && type != -1)
    return context.Error("dtype is " + std::to_string(type) + "; only int64 (3) is supported");
  x.dims = ReducedDims(x.dims, context.op().Int("axis"), context.op().Bool("keepdims"));
  x.dtype = DType::kInt64;
  context.SetOutput("Out", x);
  return Status::Ok();
}

class ArgKernel : public BoundKernel<ArgKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    axis_ = context.op().Int("axis");
    keep_ = context.op().Bool("keepdims");
    largest_ = context.op().type() == "arg_max";
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const AxisLines lines = AxisLines::Of(x_->dims(), axis_);
    if (lines.along == 0) return BadData("X " + x_->dims().ToString() + " has no values along the axis");
    int64_t* out = out_->Resize<int64_t>(ReducedDims(x_->dims(), axis_, keep_));
    WithNumber(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = x_->data<T>();
      lines.ForEach([&](int64_t, int64_t first) {
        int64_t best = 0;
        for (int64_t k = 1; k < lines.along; ++k) {
          const T value = x[first + k * lines.inner];
          const T found = x[first + best * lines.inner];
          if (IsBeyond(value, found)) best = k;
        }
        *out++ = best;
      });
    });
    return Status::Ok();
  }

 private:
  /// NaN is beyond every number, on either side.
  template <class T>
  bool IsBeyond(T value, T found) const {
    return !(largest_ ? value <= found : value >= found) && !IsNan(found);
  }

  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  int64_t axis_ = -1;
  bool keep_ = false;
  bool largest_ = true;
};

}  // namespace

void RegisterArgOrder(OpRegistry& registry) {
  for (const std::string type : {"arg_max", "arg_min"}) {
    registry.Add(type)
        .Doc(std::string("Where along an axis the ") + (type == "arg_max" ? "largest" : "smallest") +
             " value is, the first of equals.")
        .Input("X", "float32, int64 or int32; any shape")
        .Output("Out", "int64, without the axis")
        .Attr("axis", int64_t{-1}, "negative: from the end")
        .Attr("keepdims", false, "the axis stays, of size 1")
        .Attr("dtype", int64_t{VarType::INT64}, "type of Out, a VarType number: int64")
        .Fixed("flatten", false, "looks at all values")
        .InferShape(InferArg)
        .Kernel<ArgKernel>();
  }
}

}  // namespace millrace
