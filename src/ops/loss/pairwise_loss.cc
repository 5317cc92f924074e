#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/not_a_number.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/loss/class_labels.h"

namespace millrace {
namespace {

// Losses of one prediction and one label each: the functions, then one pair of kernels for all of them.

/// What a loss ignores that ignores no label.
constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

struct LogLoss {
  static constexpr const char* kX = "Predicted";
  static constexpr const char* kLabel = "Labels";
  static constexpr const char* kOut = "Loss";
  static constexpr float ignored = kNoLabel;
  float epsilon = 0;

  explicit LogLoss(const OpView& op) : epsilon(op.Float("epsilon")) {}
  float Value(float p, float y) const { return -y * std::log(p + epsilon) - (1 - y) * std::log(1 - p + epsilon); }
  float Slope(float p, float y) const { return -y / (p + epsilon) + (1 - y) / (1 - p + epsilon); }
};

struct BceLoss {
  static constexpr const char* kX = "X";
  static constexpr const char* kLabel = "Label";
  static constexpr const char* kOut = "Out";
  static constexpr float ignored = kNoLabel;

  explicit BceLoss(const OpView&) {}
  /// The logarithm of a probability of 0 counts as -100.
  static float Log(float p) { return std::max(std::log(p), -100.0F); }
  float Value(float p, float y) const { return -y * Log(p) - (1 - y) * Log(1 - p); }
  float Slope(float p, float y) const { return (p - y) / std::max(p * (1 - p), 1e-12F); }
};

struct SquareErrorCost {
  static constexpr const char* kX = "X";
  static constexpr const char* kLabel = "Y";
  static constexpr const char* kOut = "Out";

  explicit SquareErrorCost(const OpView&) {}
  float Value(float x, float y) const { return (x - y) * (x - y); }
  float Slope(float x, float y) const { return 2 * (x - y); }
};

struct SigmoidCrossEntropy {
  static constexpr const char* kX = "X";
  static constexpr const char* kLabel = "Label";
  static constexpr const char* kOut = "Out";
  /// Factor of the curved part of each value's loss, which Paddle computes from the label; 1 without it.
  static constexpr const char* kWeight = "pos_weight";
  float ignored = 0;

  explicit SigmoidCrossEntropy(const OpView& op) : ignored(static_cast<float>(op.Int("ignore_index"))) {}
  float Value(float x, float y) const {
    return y == ignored ? 0 : std::max(x, 0.0F) - x * y + std::log1p(std::exp(-std::abs(x)));
  }
  float Slope(float x, float y) const { return y == ignored ? 0 : 1 / (1 + std::exp(-x)) - y; }
  float Value(float x, float y, float weight) const {
    return y == ignored ? 0 : std::max(x, 0.0F) - x * y + weight * std::log1p(std::exp(-std::abs(x)));
  }
  /// As Paddle has it, also above 0, where it is not the slope of Value.
  float Slope(float x, float y, float weight) const { return y == ignored ? 0 : weight / (1 + std::exp(-x)) - y; }
  /// What the sums are divided by with `normalize`: the labels that count.
  float Normalizer(const float* labels, int64_t count) const {
    const auto skipped = std::count(labels, labels + count, ignored);
    return std::max(static_cast<float>(count - skipped), 1e-5F);
  }
};

/// Log loss of a click and of a teacher's score in one label: below -1 no click, below 0 a click, both without a score;
/// else the score, plus 1 where there was a click.
struct TeacherStudent {
  static constexpr const char* kX = "X";
  static constexpr const char* kLabel = "Label";
  static constexpr const char* kOut = "Y";
  float upper = 0;
  float lower = 0;

  explicit TeacherStudent(const OpView& op)
      : upper(op.Float("soft_max_up_bound")), lower(op.Float("soft_max_lower_bound")) {}
  float Value(float x, float y) const {
    const float unclicked = std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x)));
    if (y < -1) return unclicked;
    if (y < 0) return unclicked - x;
    return y < 1 ? 2 * unclicked - x * y : 2 * unclicked - x - x * (y - 1);
  }
  /// Beyond the bounds a logit is moved no further.
  float Slope(float x, float y) const {
    if (x >= upper || x <= lower) return 0;
    const float p = 1 / (1 + std::exp(-x));
    if (y < -1) return p;
    return y < 0 ? p - 1 : 2 * p - y;
  }
};

struct HingeLoss {
  static constexpr const char* kX = "Logits";
  static constexpr const char* kLabel = "Labels";
  static constexpr const char* kOut = "Loss";

  explicit HingeLoss(const OpView&) {}
  float Value(float x, float y) const { return std::max(1 - x * (2 * y - 1), 0.0F); }
  float Slope(float x, float y) const {
    const float margin = x * (2 * y - 1);
    return margin < 1 ? 1 - 2 * y : ZeroOrNan(margin);
  }
};

template <class F>
constexpr bool kTakesWeight = requires {
  F::kWeight;
};

/// Whether labels are shares from 0 to 1, of which the loss takes the log.
template <class F>
constexpr bool kTakesShares = requires(const F& loss) {
  loss.ignored;
};

template <class F>
struct Divisor {
  static float Of(const F&, bool, const float*, int64_t) { return 1; }
};
template <>
struct Divisor<SigmoidCrossEntropy> {
  static float Of(const SigmoidCrossEntropy& loss, bool normalize, const float* labels, int64_t count) {
    return normalize ? loss.Normalizer(labels, count) : 1;
  }
};

template <class F>
Status InferPairwiseLoss(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input(F::kX));
  MR_ASSIGN(const VarMeta label, context.Input(F::kLabel));
  MR_TRY(ExpectDType(context, F::kX, x, DType::kFloat32));
  MR_TRY(ExpectDType(context, F::kLabel, label, DType::kFloat32));
  if (!MayEqual(x.dims, label.dims)) {
    return context.Error("shapes differ: " + Shown(InputArguments(context.op().desc(), F::kX)[0], x.dims) + ", " +
                         Shown(InputArguments(context.op().desc(), F::kLabel)[0], label.dims));
  }
  if constexpr (kTakesWeight<F>) {
    if (context.HasInput(F::kWeight)) {
      MR_ASSIGN(const VarMeta weight, context.Input(F::kWeight));
      MR_TRY(ExpectDType(context, F::kWeight, weight, DType::kFloat32));
      if (!MayEqual(x.dims, weight.dims)) {
        return context.Error(std::string(F::kWeight) + " " +
                             Shown(InputArguments(context.op().desc(), F::kWeight)[0], weight.dims) +
                             " must have the shape of X, " + x.dims.ToString());
      }
    }
  }
  context.SetOutput(F::kOut, x);
  return Status::Ok();
}

template <class F>
class PairwiseLossKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    std::unique_ptr<PairwiseLossKernel> kernel(new PairwiseLossKernel(context.op()));
    MR_ASSIGN(kernel->x_, context.Input(F::kX));
    MR_ASSIGN(kernel->label_, context.Input(F::kLabel));
    // The gradient has Out@GRAD and writes X@GRAD; the forward operator writes Out.
    const bool backward = context.op().info().is_gradient;
    if (backward) {
      MR_ASSIGN(kernel->out_grad_, GradInput::Bind(context, GradName(F::kOut)));
    }
    MR_ASSIGN(kernel->target_, context.Output(backward ? GradName(F::kX) : std::string(F::kOut)));
    if constexpr (kTakesWeight<F>) {
      MR_ASSIGN(kernel->weight_, context.OptionalInput(F::kWeight));
    }
    kernel->names_ = context.InputName(F::kX) + ", " + context.InputName(F::kLabel);
    // The forward operator has looked at the labels.
    if (!backward) kernel->label_monitor_ = context.options().label_monitor;
    kernel->label_name_ = context.InputName(F::kLabel);
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  Status Run(const RunContext& context) override {
    const int64_t count = x_->numel();
    if (label_->numel() != count) {
      return BadData(names_ + ": shapes differ: " + x_->dims().ToString() + ", " + label_->dims().ToString());
    }
    if constexpr (kTakesShares<F>) {
      MR_TRY(CheckShares(context, label_monitor_, label_name_, *label_, loss_.ignored));
    }
    const float* x = x_->data<float>();
    const float* label = label_->data<float>();
    const float* grad = nullptr;
    if (out_grad_.bound()) {
      MR_ASSIGN(grad, out_grad_.Read(count));
    }
    if (weight_ != nullptr && weight_->numel() != count) {
      return BadData(names_ + ": the weight " + weight_->dims().ToString() +
                     " has another shape: " + x_->dims().ToString());
    }
    float* to = ResizeLike(*x_, target_);
    const float factor = 1 / Divisor<F>::Of(loss_, normalize_, label, count);
    if constexpr (kTakesWeight<F>) {
      if (weight_ != nullptr) {
        const float* weight = weight_->data<float>();
        for (int64_t i = 0; i < count; ++i) {
          to[i] = factor * (grad == nullptr ? loss_.Value(x[i], label[i], weight[i])
                                            : loss_.Slope(x[i], label[i], weight[i]) * grad[i]);
        }
        return Status::Ok();
      }
    }
    if (grad == nullptr) {
      for (int64_t i = 0; i < count; ++i) to[i] = loss_.Value(x[i], label[i]) * factor;
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = loss_.Slope(x[i], label[i]) * grad[i] * factor;
    }
    return Status::Ok();
  }

 private:
  explicit PairwiseLossKernel(const OpView& op)
      : loss_(op), normalize_(op.info().FindAttr("normalize") != nullptr && op.Bool("normalize")) {}

  F loss_;
  bool normalize_;
  const Tensor* x_ = nullptr;
  const Tensor* label_ = nullptr;
  const Tensor* weight_ = nullptr;
  GradInput out_grad_;
  Tensor* target_ = nullptr;
  LabelRangeMonitor* label_monitor_ = nullptr;
  std::string names_;
  std::string label_name_;
};

/// What the gradient operator reads of the loss.
template <class F>
std::vector<std::string> PairwiseInputs() {
  if constexpr (kTakesWeight<F>) return {F::kX, F::kLabel, F::kWeight};
  return {F::kX, F::kLabel};
}

/// What an operator has beside prediction and label; called for the operator and for its gradient.
using AddMore = void (*)(OpBuilder&);

template <class F>
void RegisterPairwise(OpRegistry& registry, const std::string& type, const std::string& doc, AddMore add_more) {
  OpBuilder forward = registry.Add(type);
  add_more(forward);
  forward.Doc(doc)
      .Input(F::kX, "any shape")
      .Input(F::kLabel, "of the same shape, float")
      .Output(F::kOut, "the same shape")
      .InferShape(InferPairwiseLoss<F>)
      .Grad({.inputs = PairwiseInputs<F>(), .of = {F::kOut}, .to = {F::kX}})
      .template Kernel<PairwiseLossKernel<F>>();
  registry.AddGradient(type).template Kernel<PairwiseLossKernel<F>>();
}

}  // namespace

void RegisterPairwiseLoss(OpRegistry& registry) {
  RegisterPairwise<LogLoss>(registry, "log_loss",
                            "Loss = -Labels log(Predicted + e) - (1 - Labels) log(1 - Predicted + e).",
                            [](OpBuilder& op) { op.Attr("epsilon", 1e-4F, "keeps the logarithm finite"); });
  RegisterPairwise<BceLoss>(registry, "bce_loss", "Out = -Label log(X) - (1 - Label) log(1 - X).", [](OpBuilder&) {});
  RegisterPairwise<SquareErrorCost>(registry, "square_error_cost", "Out = (X - Y)^2.", [](OpBuilder&) {});
  RegisterPairwise<SigmoidCrossEntropy>(
      registry, "sigmoid_cross_entropy_with_logits", "Log loss of sigmoid(X), without overflow.", [](OpBuilder& op) {
        op.Attr("ignore_index", int64_t{-100}, "values with this label cost nothing")
            .Attr("normalize", false, "divides by the number of labels that count")
            .OptionalInput("pos_weight", "factor of the loss's curved part, shape of X");
      });
  RegisterPairwise<TeacherStudent>(registry, "teacher_student_sigmoid_loss",
                                   "Log loss of sigmoid(X) against a click and against a teacher's score. Label is -2 "
                                   "for no click and -1 for a click "
                                   "without a score; with one, the score from 0 to 1, plus 1 for a click.",
                                   [](OpBuilder& op) {
                                     op.Attr("soft_max_up_bound", 15.0F, "logits from here on get no gradient")
                                         .Attr("soft_max_lower_bound", -15.0F, "nor do those down from here");
                                   });
  RegisterPairwise<HingeLoss>(registry, "hinge_loss", "Loss = max(0, 1 - Logits * (2 Labels - 1)).", [](OpBuilder&) {});
}

}  // namespace millrace
