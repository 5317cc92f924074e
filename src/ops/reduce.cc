#include <algorithm>
#include <array>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

enum class Kind : uint8_t { kSum, kMean, kSquaredNorm };

/// Which axes go. mean and squared_l2_norm reduce all of them.
struct Reduction {
  Kind kind = Kind::kSum;
  std::vector<int64_t> axes;
  bool keep = false;
  bool all = true;

  static Reduction Of(const OpView& op) {
    const std::string& type = op.type();
    if (type.starts_with("mean")) return {Kind::kMean, {}, false, true};
    if (type.starts_with("squared_l2_norm")) return {Kind::kSquaredNorm, {}, false, true};
    Reduction r{type.starts_with("reduce_mean") ? Kind::kMean : Kind::kSum, op.Ints("dim"), op.Bool("keep_dim"),
                op.Bool("reduce_all")};
    r.all = r.all || r.axes.empty();
    return r;
  }
  bool Drops(int axis, int rank) const {
    return all || std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return (a < 0 ? a + rank : a) == axis; });
  }
  Dims OutDims(const Dims& x) const {
    Dims out;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (!Drops(axis, x.rank())) {
        out.push_back(x[axis]);
      } else if (keep) {
        out.push_back(1);
      }
    }
    if (out.rank() == 0) out.push_back(1);
    return out;
  }
};

/// Walks x in order and says for each run of the last axis where its sum belongs.
class Walk {
 public:
  Walk(const Dims& x, const Reduction& reduction) : dims_(x) {
    int64_t stride = 1;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      const bool drops = reduction.Drops(axis, x.rank());
      strides_[static_cast<size_t>(axis)] = drops ? 0 : stride;
      if (!drops) stride *= x[axis];
    }
  }

  /// Calls body(x_offset, count, out_offset, out_stride).
  template <class Body>
  void ForEachRun(const Body& body) const {
    const int64_t total = dims_.numel();
    if (total == 0) return;
    const int last = dims_.rank() - 1;
    const int64_t width = last < 0 ? 1 : dims_[last];
    const int64_t stride = last < 0 ? 0 : strides_[static_cast<size_t>(last)];
    std::array<int64_t, Dims::kMaxRank> index{};
    int64_t out = 0;
    for (int64_t at = 0; at < total; at += width) {
      body(at, width, out, stride);
      for (int axis = last - 1; axis >= 0; --axis) {
        const auto i = static_cast<size_t>(axis);
        out += strides_[i];
        if (++index[i] < dims_[axis]) break;
        out -= strides_[i] * dims_[axis];
        index[i] = 0;
      }
    }
  }

 private:
  Dims dims_;
  std::array<int64_t, Dims::kMaxRank> strides_{};
};

Status InferReduce(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  const Reduction reduction = Reduction::Of(context.op());
  for (const int64_t axis : reduction.axes) MR_TRY(FrontAxis(context, axis, x.dims.rank()).status());
  VarMeta out = x;
  out.dims = reduction.OutDims(x.dims);
  if (reduction.Drops(0, x.dims.rank())) out.lod_level = 0;
  context.SetOutput("Out", out);
  return Status::Ok();
}

class ReduceKernel : public BoundKernel<ReduceKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    reduction_ = Reduction::Of(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const Dims x_dims = x_.dims();
    const std::span<const uint32_t> lod = x_.tensor().lod();
    const Dims dims = reduction_.OutDims(x_dims);
    const int64_t count = dims.numel();
    // Sums in double: a mean over a large batch is as exact as the values.
    double* sums = sums_.Resize<double>(dims);
    std::fill_n(sums, count, 0.0);
    const bool squares = reduction_.kind == Kind::kSquaredNorm;
    Walk(x_dims, reduction_).ForEachRun([&](int64_t at, int64_t width, int64_t out, int64_t stride) {
      if (stride != 0) {
        for (int64_t i = 0; i < width; ++i) sums[out + i] += static_cast<double>(x[at + i]);
        return;
      }
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) {
        const auto value = static_cast<double>(x[at + i]);
        sum += squares ? value * value : value;
      }
      sums[out] += sum;
    });
    const int64_t per_sum = count == 0 ? 1 : std::max<int64_t>(x_dims.numel() / count, 1);
    const double divisor = reduction_.kind == Kind::kMean ? static_cast<double>(per_sum) : 1.0;
    float* out = out_->Resize<float>(dims);
    if (!reduction_.Drops(0, x_dims.rank())) out_->set_lod(lod);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(sums[i] / divisor);
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  Tensor sums_;
  Reduction reduction_;
};

class ReduceGradKernel : public BoundKernel<ReduceGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    reduction_ = Reduction::Of(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t sums = reduction_.OutDims(x_.dims()).numel();
    MR_ASSIGN(const float* grad, out_grad_.Read(sums));
    const auto per_sum = static_cast<float>(std::max<int64_t>(x_.tensor().numel() / std::max<int64_t>(sums, 1), 1));
    const float factor = reduction_.kind == Kind::kMean ? 1 / per_sum : 1;
    const bool squares = reduction_.kind == Kind::kSquaredNorm;
    const float* x = squares ? x_.Read() : nullptr;
    float* x_grad = ResizeLike(x_.tensor(), x_grad_);
    Walk(x_.dims(), reduction_).ForEachRun([&](int64_t at, int64_t width, int64_t out, int64_t stride) {
      for (int64_t i = 0; i < width; ++i) {
        const float g = grad[out + i * stride] * factor;
        x_grad[at + i] = squares ? 2 * x[at + i] * g : g;
      }
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Reduction reduction_;
};

void AddAxes(OpBuilder& op) {
  op.Attr("dim", std::vector<int64_t>{0}, "axes to reduce, negative from the end; none: all")
      .Attr("keep_dim", false, "reduced axes stay, of size 1")
      .Attr("reduce_all", false, "reduces every axis");
}

void Register(OpRegistry& registry, const std::string& type, const std::string& doc, bool axes) {
  OpBuilder forward = registry.Add(type);
  OpBuilder(forward)
      .Doc(doc)
      .Input("X", "any shape")
      .Output("Out", "without the reduced axes; [1] when none is left")
      .InferShape(InferReduce)
      .Grad(GradFromX)
      .Kernel<ReduceKernel>();
  OpBuilder backward = registry.Add(type + "_grad");
  OpBuilder(backward)
      .Doc("Gradient of " + type + ".")
      .Input("X", "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Output("X@GRAD", "gradient of X")
      .InferShape(InferGradients)
      .Gradient()
      .Kernel<ReduceGradKernel>();
  if (!axes) return;
  AddAxes(forward);
  AddAxes(backward);
}

}  // namespace

void RegisterReduce(OpRegistry& registry) {
  Register(registry, "mean", "Out = the mean of all values, [1].", false);
  Register(registry, "squared_l2_norm", "Out = the sum of the squares of all values, [1].", false);
  Register(registry, "reduce_sum", "Sums along axes.", true);
  Register(registry, "reduce_mean", "Means along axes.", true);
}

}  // namespace millrace
