#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferDataNorm(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (x.dims.rank() != 2) return context.Error("X " + x.dims.ToString() + " must be a matrix");
  const int64_t slot = context.op().Int("slot_dim");
  if (slot > 0 && x.dims[1] >= 0 && x.dims[1] % slot != 0) {
    return context.Error("X " + x.dims.ToString() + " does not have slots of " + std::to_string(slot));
  }
  MR_TRY(ExpectFloats(context, {"BatchSize", "BatchSum", "BatchSquareSum"}, x.dims[1]));
  context.SetOutput("Y", x);
  x.dims = Dims{x.dims[1]};
  x.lod_level = 0;
  context.SetOutput("Means", x);
  context.SetOutput("Scales", x);
  return Status::Ok();
}

/// The slots of a row, of `slot_dim` columns each, of which the first counts shows. A slot that was never shown says
/// nothing: it is 0 and adds nothing to the sums. Without slot_dim a row is one slot that always counts.
class Shows {
 public:
  explicit Shows(const OpView& op) : width_(op.Int("slot_dim")) {}
  bool any() const { return width_ > 0; }
  /// Whether column `j` of a row is of a slot that was shown.
  bool At(const float* row, int64_t j) const { return !any() || !(std::abs(row[j - j % width_]) < kZero); }

 private:
  static constexpr float kZero = 1e-7F;
  int64_t width_;
};

class DataNormKernel : public BoundKernel<DataNormKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(size_, FloatInput::Bind(context, "BatchSize"));
    MR_ASSIGN(sum_, FloatInput::Bind(context, "BatchSum"));
    MR_ASSIGN(squares_, FloatInput::Bind(context, "BatchSquareSum"));
    MR_ASSIGN(y_, context.Output("Y"));
    MR_ASSIGN(means_, context.Output("Means"));
    MR_ASSIGN(scales_, context.Output("Scales"));
    shows_.emplace(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (x_->dims().rank() != 2) return InvalidConfig("X " + x_->dims().ToString() + " must have two axes");
    const int64_t rows = x_->dims()[0];
    const int64_t width = x_->dims()[1];
    for (const FloatInput* sums : {&size_, &sum_, &squares_}) MR_TRY(sums->Expect(width));
    const float* size = size_.Read();
    const float* sum = sum_.Read();
    const float* squares = squares_.Read();
    float* means = means_->Resize<float>({width});
    float* scales = scales_->Resize<float>({width});
    for (int64_t j = 0; j < width; ++j) {
      means[j] = sum[j] / size[j];
      scales[j] = std::sqrt(size[j] / squares[j]);
    }
    const float* x = x_->data<float>();
    float* y = ResizeLike(*x_, y_);
    for (int64_t i = 0; i < rows; ++i, x += width, y += width) {
      for (int64_t j = 0; j < width; ++j) y[j] = shows_->At(x, j) ? (x[j] - means[j]) * scales[j] : 0;
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  FloatInput size_;
  FloatInput sum_;
  FloatInput squares_;
  Tensor* y_ = nullptr;
  Tensor* means_ = nullptr;
  Tensor* scales_ = nullptr;
  std::optional<Shows> shows_;
};

/// Beside X's gradient, what this batch adds to the three sums: no gradients. An optimizer or a table adds
/// them up.
class DataNormGradKernel : public BoundKernel<DataNormGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(means_, GradInput::Bind(context, "Means"));
    MR_ASSIGN(scales_, GradInput::Bind(context, "Scales"));
    MR_ASSIGN(y_grad_, GradInput::Bind(context, "Y@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(size_, context.OptionalOutput("BatchSize@GRAD"));
    MR_ASSIGN(sum_, context.OptionalOutput("BatchSum@GRAD"));
    MR_ASSIGN(squares_, context.OptionalOutput("BatchSquareSum@GRAD"));
    epsilon_ = context.op().Float("epsilon");
    shows_.emplace(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (x_->dims().rank() != 2) return InvalidConfig("X " + x_->dims().ToString() + " must have two axes");
    const int64_t rows = x_->dims()[0];
    const int64_t width = x_->dims()[1];
    MR_ASSIGN(const float* scales, scales_.Read(width));
    MR_ASSIGN(const float* means, means_.Read(width));
    if (x_grad_ != nullptr) {
      MR_ASSIGN(const float* grad, y_grad_.Read(rows * width));
      float* x_grad = ResizeLike(*x_, x_grad_);
      for (int64_t at = 0; at < rows * width; ++at) x_grad[at] = grad[at] * scales[at % width];
    }
    DescribeBatch(rows, width, means);
    return Status::Ok();
  }

 private:
  void DescribeBatch(int64_t rows, int64_t width, const float* means) {
    const float* x = x_->data<float>();
    float* size = size_ == nullptr ? nullptr : size_->Resize<float>({width});
    float* sum = sum_ == nullptr ? nullptr : sum_->Resize<float>({width});
    float* squares = squares_ == nullptr ? nullptr : squares_->Resize<float>({width});
    for (int64_t j = 0; j < width; ++j) {
      float total = 0;
      float spread = 0;
      float counted = 0;
      for (int64_t i = 0; i < rows; ++i) {
        if (!shows_->At(x + i * width, j)) continue;
        const float value = x[i * width + j];
        counted += 1;
        total += value;
        spread += (value - means[j]) * (value - means[j]);
      }
      // Of slots, Paddle takes the average of the batch for one more row.
      const float parts = shows_->any() && counted >= 1 ? counted : 1;
      const float extra = shows_->any() && counted < 1 ? 0 : counted * epsilon_;
      if (size != nullptr) size[j] = counted / parts;
      if (sum != nullptr) sum[j] = total / parts;
      if (squares != nullptr) squares[j] = spread / parts + extra;
    }
  }

  const Tensor* x_ = nullptr;
  GradInput means_;
  GradInput scales_;
  GradInput y_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* size_ = nullptr;
  Tensor* sum_ = nullptr;
  Tensor* squares_ = nullptr;
  float epsilon_ = 0;
  std::optional<Shows> shows_;
};

}  // namespace

void RegisterDataNorm(OpRegistry& registry) {
  registry.Add("data_norm")
      .Doc("Each column less its mean, over its spread, by sums over all that was trained on.")
      .Input("X", "[rows, width]")
      .Input("BatchSize", "[width], how much was added up")
      .Input("BatchSum", "[width], the sum of it")
      .Input("BatchSquareSum", "[width], the sum of its squared distances from the mean")
      .Output("Y", "shape of X")
      .Output("Means", "[width]")
      .Output("Scales", "[width]")
      .Attr("epsilon", 1e-4F, "added to the squares for each row of a batch")
      .Attr("data_layout", std::string("NCHW"), "as Paddle writes it; changes nothing for a matrix")
      .Attr("summary_decay_rate", 0.9999999F, "of Paddle's update on GPUs; changes nothing here")
      .Attr("slot_dim", int64_t{-1}, "width of a slot, whose first column counts shows; -1: no slots")
      .Fixed("sync_stats", false, "sums over several GPUs")
      .Fixed("enable_scale_and_shift", false, "Y times scale_w, plus bias")
      .InferShape(InferDataNorm)
      .Grad({.inputs = {"X", "BatchSize", "BatchSum", "BatchSquareSum"},
             .outputs = {"Means", "Scales"},
             .of = {"Y"},
             .to = {"X", "BatchSize", "BatchSum", "BatchSquareSum"},
             .unread = {"BatchSize", "BatchSum", "BatchSquareSum"}})
      .Kernel<DataNormKernel>();
  registry.AddGradient("data_norm")
      .Doc("Gradient of data_norm, and what the batch adds to the sums.")
      .UnwrittenOutput("BatchSize", "as Paddle binds it")
      .UnwrittenOutput("BatchSum", "as Paddle binds it")
      .UnwrittenOutput("BatchSquareSum", "as Paddle binds it")
      .InferShape(KeepOutputs)
      .Kernel<DataNormGradKernel>();
}

}  // namespace millrace
