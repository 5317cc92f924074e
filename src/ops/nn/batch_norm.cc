#include <algorithm>
#include <cmath>

#include "kernels/racy.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

/// X as [outer, channels, inner].
struct Channels {
  int64_t outer;
  int64_t count;
  int64_t inner;

  static Channels Of(const Dims& dims, bool last) {
    if (last) return {dims.Product(0, dims.rank() - 1), dims[-1], 1};
    return {dims[0], dims[1], dims.Product(2, dims.rank())};
  }
  int64_t values() const { return outer * inner; }
  /// Calls body(channel, index) for each value.
  template <class Body>
  void ForEach(const Body& body) const {
    int64_t at = 0;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t i = 0; i < inner; ++i) body(c, at++);
      }
    }
  }
};

Result<bool> ChannelsLast(const OpView& op) {
  const std::string layout = op.String("data_layout");
  if (layout == "NCHW" || layout == "AnyLayout") return false;
  if (layout == "NHWC") return true;
  return InvalidConfig("data_layout is NCHW or NHWC, not \"" + layout + "\"");
}

/// Normalizes by the running mean and variance, not by those of the batch.
bool UsesGlobalStats(const OpView& op) {
  return op.Bool("use_global_stats") || (op.Bool("is_test") && !op.Bool("trainable_statistics"));
}

Status InferBatchNorm(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  const Result<bool> last = ChannelsLast(context.op());
  if (!last.ok()) return context.Error(last.status().message());
  if (x.dims.rank() < 2) return context.Error("X " + x.dims.ToString() + " must have two axes");
  const int64_t channels = *last ? x.dims[-1] : x.dims[1];
  for (const auto& [in, out] : {std::pair{"Mean", "MeanOut"}, std::pair{"Variance", "VarianceOut"}}) {
    if (InputArguments(context.op().desc(), in) == OutputArguments(context.op().desc(), out)) continue;
    if (context.HasOutput(out))
      return context.Error("output " + std::string(out) + " must be bound to the variable of input " + in);
  }
  MR_TRY(ExpectFloats(context, {"Scale", "Bias", "Mean", "Variance"}, channels));
  context.SetOutput("Y", x);
  VarMeta one = x;
  one.dims = Dims{channels};
  one.lod_level = 0;
  for (const char* name : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) context.SetOutput(name, one);
  one.dims = Dims{0};
  context.SetOutput("ReserveSpace", one);
  return Status::Ok();
}

/// SavedMean and SavedVariance hold the batch's mean and 1 / sqrt(variance + epsilon), as Paddle's do.
class BatchNormKernel : public BoundKernel<BatchNormKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(scale_, FloatInput::BindOptional(context, "Scale"));
    MR_ASSIGN(bias_, FloatInput::BindOptional(context, "Bias"));
    MR_ASSIGN(mean_, FloatInput::Bind(context, "Mean"));
    MR_ASSIGN(variance_, FloatInput::Bind(context, "Variance"));
    MR_ASSIGN(y_, context.Output("Y"));
    MR_ASSIGN(mean_out_, context.OptionalOutput("MeanOut"));
    MR_ASSIGN(variance_out_, context.OptionalOutput("VarianceOut"));
    MR_ASSIGN(saved_mean_, context.OptionalOutput("SavedMean"));
    MR_ASSIGN(saved_variance_, context.OptionalOutput("SavedVariance"));
    MR_ASSIGN(reserve_, context.OptionalOutput("ReserveSpace"));
    MR_ASSIGN(last_, ChannelsLast(context.op()));
    global_ = UsesGlobalStats(context.op());
    epsilon_ = context.op().Float("epsilon");
    momentum_ = context.op().Float("momentum");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (x_->dims().rank() < 2) return InvalidConfig("X " + x_->dims().ToString() + " must have two axes");
    const Channels channels = Channels::Of(x_->dims(), last_);
    for (const FloatInput* of_channels : {&mean_, &variance_, &scale_, &bias_}) {
      MR_TRY(of_channels->Expect(channels.count));
    }
    const float* x = x_->data<float>();
    centers_.assign(mean_.Read(), mean_.Read() + channels.count);
    spreads_.assign(variance_.Read(), variance_.Read() + channels.count);
    if (!global_ && channels.values() > 0) {
      FindStats(channels, x);
      MoveOn(mean_.Read(), centers_, mean_out_);
      MoveOn(variance_.Read(), spreads_, variance_out_);
    }
    for (float& spread : spreads_) spread = 1 / std::sqrt(spread + epsilon_);
    Keep(centers_, saved_mean_);
    Keep(spreads_, saved_variance_);
    if (reserve_ != nullptr) reserve_->Resize<float>({0});
    const float* scale = scale_.bound() ? scale_.Read() : nullptr;
    const float* bias = bias_.bound() ? bias_.Read() : nullptr;
    float* y = ResizeLike(*x_, y_);
    channels.ForEach([&](int64_t c, int64_t i) {
      const auto at = static_cast<size_t>(c);
      y[i] = (x[i] - centers_[at]) * spreads_[at] * (scale == nullptr ? 1 : scale[c]) + (bias == nullptr ? 0 : bias[c]);
    });
    return Status::Ok();
  }

 private:
  void FindStats(const Channels& channels, const float* x) {
    const auto count = static_cast<size_t>(channels.count);
    const auto values = static_cast<double>(channels.values());
    sums_.assign(count, 0);
    channels.ForEach([&](int64_t c, int64_t i) { sums_[static_cast<size_t>(c)] += static_cast<double>(x[i]); });
    for (size_t c = 0; c < count; ++c) centers_[c] = static_cast<float>(sums_[c] / values);
    sums_.assign(count, 0);
    channels.ForEach([&](int64_t c, int64_t i) {
      const double d = static_cast<double>(x[i] - centers_[static_cast<size_t>(c)]);
      sums_[static_cast<size_t>(c)] += d * d;
    });
    for (size_t c = 0; c < count; ++c) spreads_[c] = static_cast<float>(sums_[c] / values);
  }
  /// A running mean is shared by all workers: written as parameters are.
  void MoveOn(const float* running, const std::vector<float>& batch, Tensor* out) {
    if (out == nullptr) return;
    moved_.resize(batch.size());
    for (size_t c = 0; c < batch.size(); ++c) moved_[c] = running[c] * momentum_ + batch[c] * (1 - momentum_);
    racy::CopyRow(moved_.data(), out->mutable_data<float>(), moved_.size());
  }
  static void Keep(const std::vector<float>& values, Tensor* to) {
    if (to != nullptr)
      std::copy(values.begin(), values.end(), to->Resize<float>({static_cast<int64_t>(values.size())}));
  }

  const Tensor* x_ = nullptr;
  FloatInput scale_;
  FloatInput bias_;
  FloatInput mean_;
  FloatInput variance_;
  Tensor* y_ = nullptr;
  Tensor* mean_out_ = nullptr;
  Tensor* variance_out_ = nullptr;
  Tensor* saved_mean_ = nullptr;
  Tensor* saved_variance_ = nullptr;
  Tensor* reserve_ = nullptr;
  std::vector<float> centers_;
  std::vector<float> spreads_;
  std::vector<float> moved_;
  std::vector<double> sums_;
  bool last_ = false;
  bool global_ = false;
  float epsilon_ = 0;
  float momentum_ = 0;
};

class BatchNormGradKernel : public BoundKernel<BatchNormGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(scale_, FloatInput::BindOptional(context, "Scale"));
    MR_ASSIGN(saved_mean_, GradInput::Bind(context, "SavedMean"));
    MR_ASSIGN(saved_variance_, GradInput::Bind(context, "SavedVariance"));
    MR_ASSIGN(y_grad_, GradInput::Bind(context, "Y@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(scale_grad_, context.OptionalOutput("Scale@GRAD"));
    MR_ASSIGN(bias_grad_, context.OptionalOutput("Bias@GRAD"));
    MR_ASSIGN(last_, ChannelsLast(context.op()));
    global_ = UsesGlobalStats(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (x_->dims().rank() < 2) return InvalidConfig("X " + x_->dims().ToString() + " must have two axes");
    const Channels channels = Channels::Of(x_->dims(), last_);
    const auto count = static_cast<size_t>(channels.count);
    const float* x = x_->data<float>();
    MR_ASSIGN(const float* grad, y_grad_.Read(x_->numel()));
    MR_ASSIGN(const float* center, saved_mean_.Read(channels.count));
    MR_ASSIGN(const float* factor, saved_variance_.Read(channels.count));
    MR_TRY(scale_.Expect(channels.count));
    const float* scale = scale_.bound() ? scale_.Read() : nullptr;
    sums_.assign(count, 0);
    products_.assign(count, 0);
    channels.ForEach([&](int64_t c, int64_t i) {
      sums_[static_cast<size_t>(c)] += static_cast<double>(grad[i]);
      products_[static_cast<size_t>(c)] += static_cast<double>(grad[i] * (x[i] - center[c]) * factor[c]);
    });
    Store(products_, scale_grad_);
    Store(sums_, bias_grad_);
    if (x_grad_ == nullptr) return Status::Ok();
    const auto values = static_cast<double>(std::max<int64_t>(channels.values(), 1));
    float* x_grad = ResizeLike(*x_, x_grad_);
    channels.ForEach([&](int64_t c, int64_t i) {
      const auto at = static_cast<size_t>(c);
      float g = grad[i];
      // With statistics of the batch, each value moves them as well.
      if (!global_) {
        g -= static_cast<float>(sums_[at] / values) +
             (x[i] - center[c]) * factor[c] * static_cast<float>(products_[at] / values);
      }
      x_grad[i] = g * factor[c] * (scale == nullptr ? 1 : scale[c]);
    });
    return Status::Ok();
  }

 private:
  static void Store(const std::vector<double>& sums, Tensor* to) {
    if (to == nullptr) return;
    float* values = to->Resize<float>({static_cast<int64_t>(sums.size())});
    for (size_t c = 0; c < sums.size(); ++c) values[c] = static_cast<float>(sums[c]);
  }

  const Tensor* x_ = nullptr;
  FloatInput scale_;
  GradInput saved_mean_;
  GradInput saved_variance_;
  GradInput y_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* scale_grad_ = nullptr;
  Tensor* bias_grad_ = nullptr;
  std::vector<double> sums_;
  std::vector<double> products_;
  bool last_ = false;
  bool global_ = false;
};

}  // namespace

void RegisterBatchNorm(OpRegistry& registry) {
  registry.Add("batch_norm")
      .Doc("Each channel less its mean, over its standard deviation, times Scale, plus Bias.")
      .Input("X", "[rows, channels, ...]")
      .OptionalInput("Scale", "[channels]; 1 without it")
      .OptionalInput("Bias", "[channels]; 0 without it")
      .Input("Mean", "[channels], running")
      .Input("Variance", "[channels], running")
      .UnreadInput("MomentumTensor", "as in Paddle 2, the attribute momentum counts")
      .Output("Y", "shape of X")
      .OptionalOutput("MeanOut", "the variable of Mean")
      .OptionalOutput("VarianceOut", "the variable of Variance")
      .OptionalOutput("SavedMean", "[channels], for the gradient")
      .OptionalOutput("SavedVariance", "[channels], 1 / standard deviation, for the gradient")
      .OptionalOutput("ReserveSpace", "nothing")
      .Attr("momentum", 0.9F, "share of the running mean and variance that stays")
      .Attr("epsilon", 1e-5F, "keeps the quotient finite")
      .Attr("data_layout", std::string("NCHW"), "NCHW: channels are axis 1; NHWC: the last")
      .Attr("is_test", false, "normalizes by the running mean and variance, and keeps them")
      .Attr("use_global_stats", false, "the same")
      .Attr("trainable_statistics", false, "with is_test, the batch's statistics are used nevertheless")
      .Fixed("fuse_with_relu", false, "a relu after it")
      .InferShape(InferBatchNorm)
      .Grad({.inputs = {"X", "Scale", "Bias"},
             .outputs = {"SavedMean", "SavedVariance"},
             .of = {"Y"},
             .to = {"X", "Scale", "Bias"}})
      .Kernel<BatchNormKernel>();
  OpBuilder backward = registry.AddGradient("batch_norm").Kernel<BatchNormGradKernel>();
  for (const char* name : {"Mean", "Variance", "MeanOut", "VarianceOut", "ReserveSpace"}) {
    backward.UnreadInput(name, "of the forward operator");
  }
}

}  // namespace millrace
