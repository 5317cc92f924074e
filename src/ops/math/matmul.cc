#include <algorithm>

#include "kernels/gemm.h"
#include "ops/float_input.h"
#include "ops/forward_product.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

struct Flags {
  bool trans_x = false;
  bool trans_y = false;
  float alpha = 1;

  /// matmul calls them transpose_X and transpose_Y, matmul_v2 trans_x and trans_y; bmm has none.
  static Flags Of(const OpView& op) {
    if (op.type().starts_with("bmm")) return {};
    const bool first = op.type().starts_with("matmul_v2");
    return first ? Flags{op.Bool("trans_x"), op.Bool("trans_y"), 1}
                 : Flags{op.Bool("transpose_X"), op.Bool("transpose_Y"), op.Float("alpha")};
  }
};

/// The matrices of one side among the products of all: along axes of size 1 they serve every product.
struct MatrixSide {
  Dims sizes;  ///< of the axes that count matrices, as many as the products have
  int64_t count = 1;

  /// The matrix of product `b`.
  int64_t Of(int64_t b, const Dims& products, int64_t batches) const {
    if (count == batches) return b;
    int64_t at = 0;
    int64_t stride = 1;
    for (int axis = sizes.rank() - 1; axis >= 0; --axis) {
      if (sizes[axis] > 1) at += b % products[axis] * stride;
      b /= products[axis];
      stride *= sizes[axis];
    }
    return at;
  }
};

/// `batches` products of [m, k] by [k, n].
struct Products {
  Dims sizes;  ///< of the axes that count products
  int64_t batches = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  MatrixSide x;
  MatrixSide y;
  Dims out;

  int64_t X(int64_t b) const { return x.Of(b, sizes, batches); }
  int64_t Y(int64_t b) const { return y.Of(b, sizes, batches); }

  /// The same as one product where all have one Y: the rows of every X lie one behind the other.
  Products Folded(const Flags& flags) const {
    if (y.count != 1 || batches == 1 || flags.trans_x) return *this;
    Products one = *this;
    one.sizes = {};
    one.batches = 1;
    one.m = batches * m;
    one.x = {};
    one.y = {};
    return one;
  }

  /// The product over shapes, of which sizes may be -1. kInvalidConfig with both shapes when they do not fit.
  static Result<Products> Create(const Dims& x_dims, const Dims& y_dims, const Flags& flags) {
    const auto mismatch = [&] {
      return InvalidConfig("shapes do not fit: X " + x_dims.ToString() + (flags.trans_x ? " (transposed)" : "") +
                           ", Y " + y_dims.ToString() + (flags.trans_y ? " (transposed)" : ""));
    };
    if (x_dims.rank() == 0 || y_dims.rank() == 0) return mismatch();
    const Dims x = x_dims.rank() == 1 ? (flags.trans_x ? Dims{x_dims[0], 1} : Dims{1, x_dims[0]}) : x_dims;
    const Dims y = y_dims.rank() == 1 ? (flags.trans_y ? Dims{1, y_dims[0]} : Dims{y_dims[0], 1}) : y_dims;
    Products p;
    p.m = flags.trans_x ? x[-1] : x[-2];
    p.k = flags.trans_x ? x[-2] : x[-1];
    p.n = flags.trans_y ? y[-2] : y[-1];
    if (!MayEqual(p.k, flags.trans_y ? y[-1] : y[-2])) return mismatch();
    const int rank = std::max(x.rank(), y.rank()) - 2;
    for (int axis = 0; axis < rank; ++axis) {
      const auto size = [&](const Dims& dims) {
        const int own = axis - (rank - (dims.rank() - 2));
        return own < 0 ? int64_t{1} : dims[own];
      };
      const int64_t left = size(x);
      const int64_t right = size(y);
      if (!MayEqual(left, right) && left != 1 && right != 1) return mismatch();
      p.x.sizes.push_back(left);
      p.y.sizes.push_back(right);
      // A size that is not known may be 1, and then the other one counts.
      p.sizes.push_back(left == 1 || (left < 0 && right > 1) ? right : left);
    }
    p.out = p.sizes;
    p.batches = KnownProduct(p.sizes, 0, rank);
    p.x.count = KnownProduct(p.x.sizes, 0, rank);
    p.y.count = KnownProduct(p.y.sizes, 0, rank);
    if (x_dims.rank() > 1) p.out.push_back(p.m);
    if (y_dims.rank() > 1) p.out.push_back(p.n);
    if (p.out.rank() == 0) p.out.push_back(1);
    return p;
  }
};

Status InferMatmul(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta y, context.Input("Y"));
  MR_TRY(ExpectFloats(context, {"X", "Y"}));
  const auto products = Products::Create(x.dims, y.dims, Flags::Of(context.op()));
  if (!products.ok()) {
    return context.Error("X \"" + InputArguments(context.op().desc(), "X")[0] + "\", Y \"" +
                         InputArguments(context.op().desc(), "Y")[0] + "\": " + products.status().message());
  }
  VarMeta out = x;
  out.dims = products->out;
  context.SetOutput("Out", out);
  return Status::Ok();
}

void Scale(float alpha, float* values, int64_t count) {
  if (alpha == 1) return;
  for (int64_t i = 0; i < count; ++i) values[i] *= alpha;
}

class MatmulKernel : public BoundKernel<MatmulKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(y_, FloatInput::Bind(context, "Y"));
    MR_ASSIGN(out_, context.Output("Out"));
    flags_ = Flags::Of(context.op());
    gemm_ = std::make_unique<Gemm>(
        ForwardProduct(context, "Y", {.transpose_a = flags_.trans_x, .transpose_b = flags_.trans_y}));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const Products each, Products::Create(x_.dims(), y_.dims(), flags_));
    const Products p = each.Folded(flags_);
    const float* x = x_.ReadInPlace();
    const float* y = y_.ReadInPlace();
    float* out = out_->Resize<float>(p.out);
    if (x_.dims().rank() > 1 && !flags_.trans_x) out_->set_lod(x_.tensor().lod());
    for (int64_t b = 0; b < p.batches; ++b) {
      const float* left = x + p.X(b) * p.m * p.k;
      const float* right = y + p.Y(b) * p.k * p.n;
      MR_TRY(gemm_->Run(p.m, p.n, p.k, left, right, nullptr, out + b * p.m * p.n));
    }
    Scale(flags_.alpha, out, out_->numel());
    return Status::Ok();
  }

 private:
  FloatInput x_;
  FloatInput y_;
  Tensor* out_ = nullptr;
  Flags flags_;
  std::unique_ptr<Gemm> gemm_;
};

class MatmulGradKernel : public BoundKernel<MatmulGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(y_, FloatInput::Bind(context, "Y"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(y_grad_, context.OptionalOutput("Y@GRAD"));
    flags_ = Flags::Of(context.op());
    const bool bf16 = context.options().bf16;
    // dX = G Y', or (Y G')' when X is transposed; dY = X' G, or (G' X) when Y is transposed.
    for_x_ = std::make_unique<Gemm>(flags_.trans_x
                                        ? GemmSpec{.transpose_a = flags_.trans_y, .transpose_b = true, .bf16 = bf16}
                                        : GemmSpec{.transpose_b = !flags_.trans_y, .bf16 = bf16});
    for_y_ = std::make_unique<Gemm>(flags_.trans_y
                                        ? GemmSpec{.transpose_a = true, .transpose_b = flags_.trans_x, .bf16 = bf16}
                                        : GemmSpec{.transpose_a = !flags_.trans_x, .bf16 = bf16});
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const Products each, Products::Create(x_.dims(), y_.dims(), flags_));
    const Products p = each.Folded(flags_);
    MR_ASSIGN(const float* grad, out_grad_.Read(p.out.numel()));
    if (x_grad_ != nullptr) {
      const float* y = y_.ReadInPlace();
      float* x_grad = ResizeLike(x_.tensor(), x_grad_);
      const Shares shares(p.x.count != p.batches, x_grad, p.x.count * p.m * p.k, &part_);
      for (int64_t b = 0; b < p.batches; ++b) {
        const float* g = grad + b * p.m * p.n;
        const float* right = y + p.Y(b) * p.k * p.n;
        float* place = x_grad + p.X(b) * p.m * p.k;
        float* to = shares.Target(place, p.m * p.k);
        MR_TRY(flags_.trans_x ? for_x_->Run(p.k, p.m, p.n, right, g, nullptr, to)
                              : for_x_->Run(p.m, p.k, p.n, g, right, nullptr, to));
        shares.AddUp(place, p.m * p.k);
      }
      Scale(flags_.alpha, x_grad, x_grad_->numel());
    }
    if (y_grad_ == nullptr) return Status::Ok();
    const float* x = x_.ReadInPlace();
    float* y_grad = ResizeLike(y_.tensor(), y_grad_);
    const Shares shares(p.y.count != p.batches, y_grad, p.y.count * p.k * p.n, &part_);
    for (int64_t b = 0; b < p.batches; ++b) {
      const float* g = grad + b * p.m * p.n;
      const float* left = x + p.X(b) * p.m * p.k;
      float* place = y_grad + p.Y(b) * p.k * p.n;
      float* to = shares.Target(place, p.k * p.n);
      MR_TRY(flags_.trans_y ? for_y_->Run(p.n, p.k, p.m, g, left, nullptr, to)
                            : for_y_->Run(p.k, p.n, p.m, left, g, nullptr, to));
      shares.AddUp(place, p.k * p.n);
    }
    Scale(flags_.alpha, y_grad, y_grad_->numel());
    return Status::Ok();
  }

 private:
  /// How the gradients of products come to those of their matrices: straight to their place, or, where products share
  /// a matrix, first into a part that is then added to what is there.
  class Shares {
   public:
    Shares(bool shared, float* grad, int64_t count, Tensor* part) : part_(shared ? part : nullptr) {
      if (shared) std::fill_n(grad, count, 0.0F);
    }
    float* Target(float* place, int64_t size) const { return part_ == nullptr ? place : part_->Resize<float>({size}); }
    void AddUp(float* place, int64_t size) const {
      if (part_ == nullptr) return;
      const float* part = part_->data<float>();
      for (int64_t i = 0; i < size; ++i) place[i] += part[i];
    }

   private:
    Tensor* part_;
  };

  FloatInput x_;
  FloatInput y_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* y_grad_ = nullptr;
  Tensor part_;
  Flags flags_;
  std::unique_ptr<Gemm> for_x_;
  std::unique_ptr<Gemm> for_y_;
};

/// The flags of matmul, matmul_v2 and bmm.
void AddMatmulFlags(OpBuilder& op, const std::string& type) {
  if (type == "bmm") return;
  const bool second = type == "matmul_v2";
  op.Attr(second ? "trans_x" : "transpose_X", false, "X is transposed (its last two axes) first")
      .Attr(second ? "trans_y" : "transpose_Y", false, "Y is transposed (its last two axes) first");
  if (!second) op.Attr("alpha", 1.0F, "factor of the product").Fixed("head_number", int64_t{1}, "heads of attention");
}

void RegisterProduct(OpRegistry& registry, const std::string& type) {
  OpBuilder forward = registry.Add(type);
  AddMatmulFlags(forward, type);
  forward.Apart()
      .Doc("Matrix product of the last two axes; the axes before them count batches.")
      .Input("X", "[..., m, k], or [k]")
      .Input("Y", "[..., k, n], or [k]")
      .Output("Out", "[..., m, n]")
      .InferShape(InferMatmul)
      .Grad({.inputs = {"X", "Y"}, .to = {"X", "Y"}})
      .Kernel<MatmulKernel>();
  registry.AddGradient(type).Kernel<MatmulGradKernel>();
}

}  // namespace

void RegisterMatmul(OpRegistry& registry) {
  RegisterProduct(registry, "matmul");
  RegisterProduct(registry, "matmul_v2");
  RegisterProduct(registry, "bmm");
}

}  // namespace millrace
