#include <algorithm>
#include <numeric>

#include "ops/axis_lines.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/number_types.h"
#include "ops/scalar_input.h"

namespace millrace {
namespace {

struct TopKRule {
  int64_t k = 1;
  bool largest = true;
  int64_t axis = -1;

  static TopKRule Of(const OpView& op) {
    if (!op.type().starts_with("top_k_v2")) return {op.Int("k"), true, -1};
    return {op.Int("k"), op.Bool("largest"), op.Int("axis")};
  }
};

Status InferTopK(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  const TopKRule rule = TopKRule::Of(context.op());
  MR_ASSIGN(const int axis, FrontAxis(context, rule.axis, x.dims.rank()));
  const bool is_told = !context.HasInput("K");
  const int64_t k = is_told ? rule.k : -1;
  if (is_told && (k < 1 || (x.dims[axis] >= 0 && k > x.dims[axis]))) {
    return context.Error("k = " + std::to_string(k) + " of X " +
                         Shown(InputArguments(context.op().desc(), "X")[0], x.dims));
  }
  x.dims.set(axis, k);
  context.SetOutput("Out", x);
  x.dtype = DType::kInt64;
  context.SetOutput("Indices", x);
  return Status::Ok();
}

class TopKKernel : public BoundKernel<TopKKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(indices_, context.Output("Indices"));
    rule_ = TopKRule::Of(context.op());
    MR_ASSIGN(k_, ScalarInput::Bind(context, "K", static_cast<double>(rule_.k)));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const double k, k_.Read());
    rule_.k = ConvertValue<int64_t>(k);
    Dims dims = x_->dims();
    const AxisLines lines = AxisLines::Of(dims, rule_.axis);
    if (rule_.k < 1 || rule_.k > lines.along) {
      return BadData("k = " + std::to_string(rule_.k) + " of X " + dims.ToString());
    }
    dims.set(static_cast<int>(rule_.axis < 0 ? rule_.axis + dims.rank() : rule_.axis), rule_.k);
    WithNumber(x_->dtype(), [&](auto sample) { Take<decltype(sample)>(dims, lines); });
    return Status::Ok();
  }

 private:
  template <class T>
  void Take(const Dims& dims, const AxisLines& lines) {
    const T* x = x_->data<T>();
    T* out = out_->Resize<T>(dims);
    int64_t* indices = indices_->Resize<int64_t>(dims);
    const AxisLines taken{lines.outer, rule_.k, lines.inner};
    order_.resize(static_cast<size_t>(lines.along));
    lines.ForEach([&](int64_t line, int64_t first) {
      const T* from = x + first;
      std::iota(order_.begin(), order_.end(), int64_t{0});
      std::partial_sort(order_.begin(), order_.begin() + rule_.k, order_.end(), [&](int64_t a, int64_t b) {
        return IsBefore(from[a * lines.inner], from[b * lines.inner], a, b, rule_.largest);
      });
      int64_t at = taken.First(line);
      for (int64_t j = 0; j < rule_.k; ++j, at += lines.inner) {
        indices[at] = order_[static_cast<size_t>(j)];
        out[at] = from[indices[at] * lines.inner];
      }
    });
  }

  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  Tensor* indices_ = nullptr;
  TopKRule rule_;
  ScalarInput k_;
  std::vector<int64_t> order_;
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

/// Each value that was taken has the gradient of where it went; the others have none. Of argsort all were taken.
class TopKGradKernel : public BoundKernel<TopKGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(indices_, context.Input("Indices"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    const bool has_axis = context.op().info().FindAttr("axis") != nullptr;  // not top_k
    axis_ = has_axis ? context.op().Int("axis") : -1;
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const AxisLines lines = AxisLines::Of(x_->dims(), axis_);
    const int64_t count = lines.outer * lines.inner;
    if (count == 0) {
      ResizeLike(*x_, x_grad_);
      return Status::Ok();
    }
    if (indices_->empty() || indices_->dtype() != DType::kInt64 || indices_->numel() % count != 0) {
      return InvalidConfig("Indices " + indices_->dims().ToString() + " does not fit X " + x_->dims().ToString());
    }
    const int64_t k = indices_->numel() / count;
    const int64_t* indices = indices_->data<int64_t>();
    MR_ASSIGN(const float* grad, out_grad_.Read(indices_->numel()));
    float* x_grad = ResizeLike(*x_, x_grad_);
    std::fill_n(x_grad, x_->numel(), 0.0F);
    const AxisLines taken{lines.outer, k, lines.inner};
    Status fits;
    lines.ForEach([&](int64_t line, int64_t first) {
      int64_t at = taken.First(line);
      for (int64_t j = 0; j < k; ++j, at += lines.inner) {
        const int64_t from = indices[at];
        if (from < 0 || from >= lines.along) {
          fits = InvalidConfig("an index is " + std::to_string(from) + ", outside X " + x_->dims().ToString());
        } else {
          x_grad[first + from * lines.inner] += grad[at];
        }
      }
    });
    return fits;
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* indices_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  int64_t axis_ = -1;
};

void RegisterOneTopK(OpRegistry& registry, const std::string& type, bool second) {
  OpBuilder forward = registry.Add(type);
  forward.Apart()
      .Doc("The k largest values of each row, in order, and where they stand; NaN counts as the largest.")
      .Input("X", std::string("float32, int64 or int32; ") + (second ? "any shape" : "[..., width]"))
      .OptionalInput("K", "[1], instead of k")
      .Output("Out", second ? "of size k along the axis" : "[..., k]")
      .Output("Indices", "int64, shape of Out")
      .Attr("k", int64_t{1}, "how many")
      .InferShape(InferTopK)
      .Grad({.inputs = {"X"}, .outputs = {"Indices"}})
      .Kernel<TopKKernel>();
  if (second) {
    forward.Attr("axis", int64_t{-1}, "negative: from the end")
        .Attr("largest", true, "false: the k smallest")
        .Attr("sorted", true, "always so");
  }
  OpBuilder backward = registry.AddGradient(type).Kernel<TopKGradKernel>();
  if (second) backward.UnreadInput("K", "of the forward operator");
}

}  // namespace

void RegisterTopK(OpRegistry& registry) {
  RegisterOneTopK(registry, "top_k", false);
  RegisterOneTopK(registry, "top_k_v2", true);
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
  registry.AddGradient("argsort").Kernel<TopKGradKernel>();
}

}  // namespace millrace
