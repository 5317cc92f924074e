#include "kernels/gemm.h"
#include "ops/float_input.h"
#include "ops/forward_product.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

/// X and Y as matrices: axes before the split are rows, the others columns.
struct Matrices {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;

  static Matrices Of(const Dims& x, int64_t x_split, const Dims& y, int64_t y_split) {
    const auto xs = static_cast<int>(x_split);
    const auto ys = static_cast<int>(y_split);
    return {x.Product(0, xs), x.Product(xs, x.rank()), y.Product(ys, y.rank())};
  }
};

/// What a batch's own sizes decide.
Status CheckInner(const Dims& x, int64_t x_split, const Dims& y, int64_t y_split) {
  const bool splits = x_split < x.rank() && y_split < y.rank();
  if (splits && x.Product(static_cast<int>(x_split), x.rank()) == y.Product(0, static_cast<int>(y_split))) {
    return Status::Ok();
  }
  return BadData("the columns of X are not the rows of Y: " + x.ToString() + ", " + y.ToString());
}

Status InferMul(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta y, context.Input("Y"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(ExpectDType(context, "Y", y, DType::kFloat32));
  const auto x_split = static_cast<int>(context.op().Int("x_num_col_dims"));
  const auto y_split = static_cast<int>(context.op().Int("y_num_col_dims"));
  const std::string shapes = "X " + Shown(InputArguments(context.op().desc(), "X")[0], x.dims) + ", Y " +
                             Shown(InputArguments(context.op().desc(), "Y")[0], y.dims);
  if (x_split < 1 || x_split >= x.dims.rank() || y_split < 1 || y_split >= y.dims.rank()) {
    return context.Error("x_num_col_dims " + std::to_string(x_split) + " and y_num_col_dims " +
                         std::to_string(y_split) + " do not split " + shapes);
  }
  const int64_t inner = KnownProduct(x.dims, x_split, x.dims.rank());
  if (!MayEqual(inner, KnownProduct(y.dims, 0, y_split))) {
    return context.Error("the columns of X are not the rows of Y: " + shapes);
  }
  VarMeta out = x;
  out.dims = Dims(x.dims.sizes().subspan(0, static_cast<size_t>(x_split)));
  for (int axis = y_split; axis < y.dims.rank(); ++axis) out.dims.push_back(y.dims[axis]);
  context.SetOutput("Out", out);
  return Status::Ok();
}

class MulKernel : public BoundKernel<MulKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(y_, FloatInput::Bind(context, "Y"));
    MR_ASSIGN(out_, context.Output("Out"));
    x_split_ = context.op().Int("x_num_col_dims");
    y_split_ = context.op().Int("y_num_col_dims");
    gemm_ = std::make_unique<Gemm>(ForwardProduct(context, "Y", {}));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const auto [rows, inner, columns] = Matrices::Of(x_.dims(), x_split_, y_.dims(), y_split_);
    MR_TRY(CheckInner(x_.dims(), x_split_, y_.dims(), y_split_));
    Dims dims(x_.dims().sizes().subspan(0, static_cast<size_t>(x_split_)));
    for (int axis = static_cast<int>(y_split_); axis < y_.dims().rank(); ++axis) dims.push_back(y_.dims()[axis]);
    float* out = out_->Resize<float>(dims);
    out_->set_lod(x_.tensor().lod());
    return gemm_->Run(rows, columns, inner, x_.ReadInPlace(), y_.ReadInPlace(), nullptr, out);
  }

 private:
  FloatInput x_;
  FloatInput y_;
  Tensor* out_ = nullptr;
  int64_t x_split_ = 1;
  int64_t y_split_ = 1;
  std::unique_ptr<Gemm> gemm_;
};

class MulGradKernel : public BoundKernel<MulGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(y_, FloatInput::Bind(context, "Y"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(y_grad_, context.OptionalOutput("Y@GRAD"));
    x_split_ = context.op().Int("x_num_col_dims");
    y_split_ = context.op().Int("y_num_col_dims");
    const bool bf16 = context.options().bf16;
    for_x_ = std::make_unique<Gemm>(GemmSpec{.transpose_b = true, .bf16 = bf16});
    for_y_ = std::make_unique<Gemm>(GemmSpec{.transpose_a = true, .bf16 = bf16});
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const auto [rows, inner, columns] = Matrices::Of(x_.dims(), x_split_, y_.dims(), y_split_);
    MR_TRY(CheckInner(x_.dims(), x_split_, y_.dims(), y_split_));
    MR_ASSIGN(const float* grad, out_grad_.Read(rows * columns));
    if (x_grad_ != nullptr) {
      float* x_grad = ResizeLike(x_.tensor(), x_grad_);
      MR_TRY(for_x_->Run(rows, inner, columns, grad, y_.ReadInPlace(), nullptr, x_grad));
    }
    if (y_grad_ == nullptr) return Status::Ok();
    float* y_grad = ResizeLike(y_.tensor(), y_grad_);
    return for_y_->Run(inner, columns, rows, x_.ReadInPlace(), grad, nullptr, y_grad);
  }

 private:
  FloatInput x_;
  FloatInput y_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* y_grad_ = nullptr;
  int64_t x_split_ = 1;
  int64_t y_split_ = 1;
  std::unique_ptr<Gemm> for_x_;
  std::unique_ptr<Gemm> for_y_;
};

}  // namespace

void RegisterMul(OpRegistry& registry) {
  registry.Add("mul")
      .Apart()
      .Doc("Matrix product: X and Y are flattened to matrices first.")
      .Input("X", "[..., inner]")
      .Input("Y", "[inner, ...]")
      .Output("Out", "the first axes of X, then the last of Y")
      .Attr("x_num_col_dims", int64_t{1}, "axes of X that are rows")
      .Attr("y_num_col_dims", int64_t{1}, "axes of Y that are rows")
      .InferShape(InferMul)
      .Grad({.inputs = {"X", "Y"}, .to = {"X", "Y"}})
      .Kernel<MulKernel>();
  registry.AddGradient("mul").Kernel<MulGradKernel>();
}

}  // namespace millrace
