#include "config/validate_optimizer.h"

#include <cmath>

#include "model.pb.h"
#include "program/oneof_names.h"
#include "program/optimizer_rule.h"

namespace millrace {
namespace {

void CheckSchedule(const LearningRateSchedule& schedule, const std::string& path, Checker& check) {
  if (schedule.has_linear_warmup() && schedule.warmup_steps() > 0) {
    check.Error(path + ".linear_warmup", "there is a warm-up already, warmup_steps; leave out one of them");
  }
  const auto& piecewise = schedule.piecewise();
  if (schedule.has_piecewise() && piecewise.rates_size() != piecewise.boundaries_size() + 1) {
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
}

void CheckClip(const GradientClip& clip, const std::string& path, Checker& check) {
  switch (clip.kind_case()) {
    case GradientClip::kValue:
      if (clip.has_min_value() && clip.min_value() > clip.value()) {
        check.Error(path + ".min_value", "must not be above value, " + std::to_string(clip.value()) + "; " +
                                             std::to_string(clip.min_value()));
      } else if (!clip.has_min_value() && (!(clip.value() > 0) || std::isinf(clip.value()))) {
        check.Error(path + ".value", "value must be above 0, not " + Checker::Number(clip.value()));
      }
      return;
    case GradientClip::KIND_NOT_SET:
      check.Error(path, "a clip needs " + OneofNames<GradientClip>("kind") + ", as in clip { norm: 5 }");
      return;
    default: break;
  }
  if (clip.has_min_value()) check.Error(path + ".min_value", "stands beside value alone");
}

}  // namespace

void CheckOptimizer(const OptimizerDesc& optimizer, const std::string& path, Checker& check) {
  if (RuleOf(optimizer) == nullptr) {
    check.Error(path, "an optimizer needs a rule: " + OneofNames<OptimizerDesc>("rule") +
                          ", as in optimizer { adagrad { lr: 0.01 } }");
  }
  if (optimizer.has_clip()) CheckClip(optimizer.clip(), path + ".clip", check);
  if (optimizer.has_schedule()) CheckSchedule(optimizer.schedule(), path + ".schedule", check);
}

}  // namespace millrace
