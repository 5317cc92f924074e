#include "config/validate_optimizer.h"

#include "model.pb.h"
#include "program/oneof_names.h"

namespace millrace {
namespace {

void CheckSchedule(const LearningRateSchedule& schedule, const std::string& path, Checker& check) {
  check.AtLeast<int64_t>(path + ".warmup_steps", schedule.warmup_steps(), 0);
  if (schedule.has_linear_warmup()) {
    check.AtLeast<int64_t>(path + ".linear_warmup.steps", schedule.linear_warmup().steps(), 1);
    check.NotNegative(path + ".linear_warmup.start_rate", schedule.linear_warmup().start_rate());
    check.NotNegative(path + ".linear_warmup.end_rate", schedule.linear_warmup().end_rate());
    if (schedule.warmup_steps() > 0) {
      check.Error(path + ".linear_warmup", "there is a warm-up already, warmup_steps; leave out one of them");
    }
  }
  switch (schedule.kind_case()) {
    case LearningRateSchedule::kExponential:
      check.AtLeast<int64_t>(path + ".exponential.decay_steps", schedule.exponential().decay_steps(), 1);
      check.Positive(path + ".exponential.decay_rate", schedule.exponential().decay_rate());
      break;
    case LearningRateSchedule::kPolynomial:
      check.AtLeast<int64_t>(path + ".polynomial.decay_steps", schedule.polynomial().decay_steps(), 1);
      check.NotNegative(path + ".polynomial.end_rate", schedule.polynomial().end_rate());
      check.Positive(path + ".polynomial.power", schedule.polynomial().power());
      break;
    case LearningRateSchedule::kPiecewise: {
      const auto& piecewise = schedule.piecewise();
      if (piecewise.rates_size() != piecewise.boundaries_size() + 1) {
        check.Error(path + ".piecewise", "piecewise needs one rate more than boundaries; it has " +
                                             std::to_string(piecewise.rates_size()) + " rates and " +
                                             std::to_string(piecewise.boundaries_size()) + " boundaries");
      }
      for (int i = 0; i < piecewise.boundaries_size(); ++i) {
        const int64_t before = i == 0 ? 0 : piecewise.boundaries(i - 1);
        if (piecewise.boundaries(i) <= before) {
          check.Error(path + ".piecewise.boundaries[" + std::to_string(i) + "]",
                      "boundaries rise from 1 on; " + std::to_string(piecewise.boundaries(i)) + " follows " +
                          std::to_string(before));
        }
      }
      for (int i = 0; i < piecewise.rates_size(); ++i) {
        check.NotNegative(path + ".piecewise.rates[" + std::to_string(i) + "]", piecewise.rates(i));
      }
      break;
    }
    case LearningRateSchedule::kCosine:
      check.AtLeast<int64_t>(path + ".cosine.decay_steps", schedule.cosine().decay_steps(), 1);
      check.NotNegative(path + ".cosine.end_rate", schedule.cosine().end_rate());
      check.AtLeast<int64_t>(path + ".cosine.stair_steps", schedule.cosine().stair_steps(), 1);
      break;
    case LearningRateSchedule::kNaturalExponential:
      check.AtLeast<int64_t>(path + ".natural_exponential.decay_steps", schedule.natural_exponential().decay_steps(),
                             1);
      check.NotNegative(path + ".natural_exponential.decay_rate", schedule.natural_exponential().decay_rate());
      break;
    case LearningRateSchedule::kInverseTime:
      check.AtLeast<int64_t>(path + ".inverse_time.decay_steps", schedule.inverse_time().decay_steps(), 1);
      check.NotNegative(path + ".inverse_time.decay_rate", schedule.inverse_time().decay_rate());
      break;
    case LearningRateSchedule::kNoam:
      check.AtLeast<int64_t>(path + ".noam.d_model", schedule.noam().d_model(), 1);
      check.AtLeast<int64_t>(path + ".noam.warmup_steps", schedule.noam().warmup_steps(), 1);
      break;
    case LearningRateSchedule::KIND_NOT_SET: break;
  }
}

void CheckClip(const GradientClip& clip, const std::string& path, Checker& check) {
  switch (clip.kind_case()) {
    case GradientClip::kValue:
      if (clip.has_min_value() && clip.min_value() > clip.value()) {
        check.Error(path + ".min_value", "must not be above value, " + std::to_string(clip.value()) + "; " +
                                             std::to_string(clip.min_value()));
      } else if (!clip.has_min_value()) {
        check.Positive(path + ".value", clip.value());
      }
      return;
    case GradientClip::kNorm: check.Positive(path + ".norm", clip.norm()); break;
    case GradientClip::kGlobalNorm: check.Positive(path + ".global_norm", clip.global_norm()); break;
    case GradientClip::KIND_NOT_SET:
      check.Error(path, "a clip needs " + OneofNames<GradientClip>("kind") + ", as in clip { norm: 5 }");
      return;
  }
  if (clip.has_min_value()) check.Error(path + ".min_value", "stands beside value alone");
}

}  // namespace

void CheckOptimizer(const OptimizerDesc& optimizer, const std::string& path, Checker& check) {
  switch (optimizer.rule_case()) {
    case OptimizerDesc::kSgd: check.Positive(path + ".sgd.lr", optimizer.sgd().lr()); break;
    case OptimizerDesc::kAdagrad:
      check.Positive(path + ".adagrad.lr", optimizer.adagrad().lr());
      check.Positive(path + ".adagrad.epsilon", optimizer.adagrad().epsilon());
      check.NotNegative(path + ".adagrad.initial_accumulator", optimizer.adagrad().initial_accumulator());
      break;
    case OptimizerDesc::kAdam:
      check.Positive(path + ".adam.lr", optimizer.adam().lr());
      check.Within(path + ".adam.beta1", optimizer.adam().beta1(), 0, 1, false);
      check.Within(path + ".adam.beta2", optimizer.adam().beta2(), 0, 1, false);
      check.Positive(path + ".adam.epsilon", optimizer.adam().epsilon());
      break;
    case OptimizerDesc::kFtrl:
      check.Positive(path + ".ftrl.alpha", optimizer.ftrl().alpha());
      check.NotNegative(path + ".ftrl.beta", optimizer.ftrl().beta());
      check.NotNegative(path + ".ftrl.l1", optimizer.ftrl().l1());
      check.NotNegative(path + ".ftrl.l2", optimizer.ftrl().l2());
      if (!(optimizer.ftrl().lr_power() <= 0)) {
        check.Error(path + ".ftrl.lr_power",
                    "lr_power must not be above 0, not " + Checker::Number(optimizer.ftrl().lr_power()));
      }
      break;
    case OptimizerDesc::kMomentum:
      check.Positive(path + ".momentum.lr", optimizer.momentum().lr());
      check.Within(path + ".momentum.mu", optimizer.momentum().mu(), 0, 1, false);
      break;
    case OptimizerDesc::kRmsprop:
      check.Positive(path + ".rmsprop.lr", optimizer.rmsprop().lr());
      check.Within(path + ".rmsprop.decay", optimizer.rmsprop().decay(), 0, 1, false);
      check.Positive(path + ".rmsprop.epsilon", optimizer.rmsprop().epsilon());
      check.Within(path + ".rmsprop.momentum", optimizer.rmsprop().momentum(), 0, 1, false);
      break;
    case OptimizerDesc::kDecayedAdagrad:
      check.Positive(path + ".decayed_adagrad.lr", optimizer.decayed_adagrad().lr());
      check.Within(path + ".decayed_adagrad.decay", optimizer.decayed_adagrad().decay(), 0, 1, false);
      check.Positive(path + ".decayed_adagrad.epsilon", optimizer.decayed_adagrad().epsilon());
      break;
    case OptimizerDesc::kLarsMomentum:
      check.Positive(path + ".lars_momentum.lr", optimizer.lars_momentum().lr());
      check.Within(path + ".lars_momentum.mu", optimizer.lars_momentum().mu(), 0, 1, false);
      check.Positive(path + ".lars_momentum.coefficient", optimizer.lars_momentum().coefficient());
      check.NotNegative(path + ".lars_momentum.weight_decay", optimizer.lars_momentum().weight_decay());
      break;
    case OptimizerDesc::kAdadelta:
      check.Positive(path + ".adadelta.lr", optimizer.adadelta().lr());
      check.Within(path + ".adadelta.rho", optimizer.adadelta().rho(), 0, 1, false);
      check.Positive(path + ".adadelta.epsilon", optimizer.adadelta().epsilon());
      break;
    case OptimizerDesc::kAdamax:
      check.Positive(path + ".adamax.lr", optimizer.adamax().lr());
      check.Within(path + ".adamax.beta1", optimizer.adamax().beta1(), 0, 1, false);
      check.Within(path + ".adamax.beta2", optimizer.adamax().beta2(), 0, 1, false);
      check.Positive(path + ".adamax.epsilon", optimizer.adamax().epsilon());
      break;
    case OptimizerDesc::kLamb:
      check.Positive(path + ".lamb.lr", optimizer.lamb().lr());
      check.NotNegative(path + ".lamb.weight_decay", optimizer.lamb().weight_decay());
      check.Within(path + ".lamb.beta1", optimizer.lamb().beta1(), 0, 1, false);
      check.Within(path + ".lamb.beta2", optimizer.lamb().beta2(), 0, 1, false);
      check.Positive(path + ".lamb.epsilon", optimizer.lamb().epsilon());
      break;
    case OptimizerDesc::RULE_NOT_SET:
      check.Error(path, "an optimizer needs a rule: " + OneofNames<OptimizerDesc>("rule") +
                            ", as in optimizer { adagrad { lr: 0.01 } }");
  }
  if (optimizer.has_regularization()) {
    check.NotNegative(path + ".regularization.l1", optimizer.regularization().l1());
    check.NotNegative(path + ".regularization.l2", optimizer.regularization().l2());
  }
  if (optimizer.has_clip()) CheckClip(optimizer.clip(), path + ".clip", check);
  if (optimizer.has_schedule()) CheckSchedule(optimizer.schedule(), path + ".schedule", check);
}

}  // namespace millrace
