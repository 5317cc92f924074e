#include <algorithm>

#include "core/hash.h"
#include "core/numbers.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/scalar_input.h"

namespace millrace {
namespace {

struct DropoutRule {
  float prob = 0;
  bool upscale = false;
  bool is_test = false;

  static Result<DropoutRule> Of(const OpView& op) {
    const std::string how = op.String("dropout_implementation");
    DropoutRule rule{op.Float("dropout_prob"), how == "upscale_in_train", op.Bool("is_test")};
    if (!rule.upscale && how != "downgrade_in_infer") {
      return InvalidConfig(op.type() + ": dropout_implementation is upscale_in_train or downgrade_in_infer, not \"" +
                           how + "\"");
    }
    if (!(rule.prob >= 0 && rule.prob <= 1)) {
      return InvalidConfig(op.type() + ": dropout_prob is from 0 to 1, not " + ShortestNumber(rule.prob));
    }
    return rule;
  }
  /// What a value that stays is multiplied by; in a test every value stays.
  float Factor() const {
    if (is_test) return upscale ? 1 : 1 - prob;
    return upscale && prob < 1 ? 1 / (1 - prob) : 1;
  }
};

Status InferDropout(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(DropoutRule::Of(context.op()).status());
  context.SetOutput("Out", x);
  x.dtype = DType::kUint8;
  context.SetOutput("Mask", x);
  return Status::Ok();
}

class DropoutKernel : public BoundKernel<DropoutKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(mask_, context.OptionalOutput("Mask"));
    MR_ASSIGN(rule_, DropoutRule::Of(context.op()));
    const int64_t seed = context.op().Int("seed");
    MR_ASSIGN(told_, ScalarInput::Bind(context, "Seed", static_cast<double>(seed)));
    job_seed_ = context.options().seed;
    salt_ = HashName(context.OutputName("Out"));
    worker_ = static_cast<uint64_t>(context.options().worker);
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    const float* x = x_.Read();
    const Dims dims = x_.dims();
    const int64_t count = dims.numel();
    float* out = ResizeLike(x_.tensor(), out_);
    uint8_t* mask = mask_ == nullptr ? nullptr : mask_->Resize<uint8_t>(dims);
    const float factor = rule_.Factor();
    MR_ASSIGN(const double told, told_.Read());
    const uint64_t seed = told != 0 ? static_cast<uint64_t>(ConvertValue<int64_t>(told)) : job_seed_;
    const uint64_t batch_seed = Mix64(Mix64(Mix64(seed, salt_), worker_), static_cast<uint64_t>(context.step));
    for (int64_t i = 0; i < count; ++i) {
      const bool stays = rule_.is_test || HashedUniform(batch_seed, static_cast<uint64_t>(i)) >= rule_.prob;
      out[i] = stays ? x[i] * factor : 0;
      if (mask != nullptr) mask[i] = stays ? 1 : 0;
    }
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  Tensor* mask_ = nullptr;
  DropoutRule rule_;
  ScalarInput told_;
  uint64_t job_seed_ = 0;
  uint64_t salt_ = 0;
  uint64_t worker_ = 0;
};

class DropoutGradKernel : public BoundKernel<DropoutGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(mask_, GradInput::Bind(context, "Mask"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    MR_ASSIGN(rule_, DropoutRule::Of(context.op()));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t count = mask_.tensor().numel();
    MR_ASSIGN(const uint8_t* mask, mask_.Read<uint8_t>(count));
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* x_grad = ResizeLike(out_grad_.tensor(), x_grad_);
    const float factor = rule_.Factor();
    for (int64_t i = 0; i < count; ++i) x_grad[i] = mask[i] != 0 ? grad[i] * factor : 0;
    return Status::Ok();
  }

 private:
  GradInput mask_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  DropoutRule rule_;
};

}  // namespace

void RegisterDropout(OpRegistry& registry) {
  registry.Add("dropout")
      .Doc("Sets a random share of the values to 0; the choice depends on seed, worker and batch alone.")
      .Input("X", "any shape")
      .OptionalInput("Seed", "[1], instead of seed")
      .Output("Out", "shape of X")
      .OptionalOutput("Mask", "1 where a value stays")
      .Attr("dropout_prob", 0.5F, "share of the values that become 0")
      .Attr("dropout_implementation", std::string("downgrade_in_infer"),
            "upscale_in_train: what stays is divided by 1 - prob; downgrade_in_infer: tests multiply by it instead")
      .Attr("is_test", false, "nothing is dropped")
      .Attr("seed", int64_t{0}, "0: the job's seed and Out's name")
      .Attr("fix_seed", false, "as Paddle writes it; changes nothing here")
      .InferShape(InferDropout)
      .Grad({.outputs = {"Mask"}})
      .Kernel<DropoutKernel>();
  registry.AddGradient("dropout").Kernel<DropoutGradKernel>();
}

}  // namespace millrace
