#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/not_a_number.h"
#include "ops/axis_lines.h"
#include "ops/grad_input.h"
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

Status InferArgsort(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(FrontAxis(context, context.op().Int("axis"), x.dims.rank()).status());
  context.SetOutput("Out", x);
  x.dtype = DType::kInt64;
  context.SetOutput("Indices", x);
  return Status::Ok();
}

class ArgsortKernel : public BoundKernel<ArgsortKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(indices_, context.Output("Indices"));
    axis_ = context.op().Int("axis");
    descending_ = context.op().Bool("descending");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    WithNumber(x_->dtype(), [this](auto sample) { Sort<decltype(sample)>(); });
    return Status::Ok();
  }

 private:
  template <class T>
  void Sort() {
    const T* x = x_->data<T>();
    const AxisLines lines = AxisLines::Of(x_->dims(), axis_);
    T* out = ResizeLikeIn<T>(*x_, out_);
    int64_t* indices = indices_->Resize<int64_t>(x_->dims());
    order_.resize(static_cast<size_t>(lines.along));
    lines.ForEach([&](int64_t, int64_t first) {
      std::iota(order_.begin(), order_.end(), int64_t{0});
      std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
        return IsBefore(x[first + a * lines.inner], x[first + b * lines.inner], a, b, descending_);
      });
      int64_t at = first;
      for (const int64_t k : order_) {
        out[at] = x[first + k * lines.inner];
        indices[at] = k;
        at += lines.inner;
      }
    });
  }

  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  Tensor* indices_ = nullptr;
  std::vector<int64_t> order_;
  int64_t axis_ = -1;
  bool descending_ = false;
};

class ArgsortGradKernel : public BoundKernel<ArgsortGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(indices_, context.Input("Indices"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t* indices = indices_->data<int64_t>();
    MR_ASSIGN(const float* grad, out_grad_.Read(indices_->numel()));
    const AxisLines lines = AxisLines::Of(indices_->dims(), axis_);
    for (int64_t at = 0; at < indices_->numel(); ++at) {
      if (indices[at] >= 0 && indices[at] < lines.along) continue;
      return InvalidConfig("Indices holds " + std::to_string(indices[at]) + ", and the axis has " +
                           std::to_string(lines.along) + " values");
    }
    float* x_grad = x_grad_->Resize<float>(indices_->dims());
    lines.ForEach([&](int64_t, int64_t first) {
      for (int64_t k = 0; k < lines.along; ++k) {
        const int64_t at = first + k * lines.inner;
        x_grad[first + indices[at] * lines.inner] = grad[at];
      }
    });
    return Status::Ok();
  }

 private:
  const Tensor* indices_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  int64_t axis_ = -1;
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
  registry.Add("argsort")
      .Apart()
      .Doc("Sorts along an axis, equal values in their order; NaN counts as the largest value.")
      .Input("X", "float32, int64 or int32; any shape")
      .Output("Out", "shape of X, sorted")
      .Output("Indices", "int64, where each value stood")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .Attr("descending", false, "largest first")
      .InferShape(InferArgsort)
      .Grad({.inputs = {"X"}, .outputs = {"Indices"}})
      .Kernel<ArgsortKernel>();
  registry.AddGradient("argsort").Kernel<ArgsortGradKernel>();
}

}  // namespace millrace
