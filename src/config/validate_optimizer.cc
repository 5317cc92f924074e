#include "config/validate_optimizer.h"

#include "model.pb.h"

namespace millrace {
namespace {

void CheckSchedule(const LearningRateSchedule& schedule, const std::string& path, Checker& check) {
  check.AtLeast<int64_t>(path + ".warmup_steps", schedule.warmup_steps(), 0);
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
      break;
    case LearningRateSchedule::KIND_NOT_SET: break;
  }
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
      break;
    case OptimizerDesc::kMomentum:
      check.Positive(path + ".momentum.lr", optimizer.momentum().lr());
      check.Within(path + ".momentum.mu", optimizer.momentum().mu(), 0, 1, false);
      check.NotNegative(path + ".momentum.l2", optimizer.momentum().l2());
      break;
    case OptimizerDesc::RULE_NOT_SET:
      check.Error(
          path,
          "an optimizer needs a rule: sgd, momentum, adagrad, adam or ftrl, as in optimizer { adagrad { lr: 0.01 } }");
  }
  if (optimizer.has_schedule()) CheckSchedule(optimizer.schedule(), path + ".schedule", check);
}

}  // namespace millrace
