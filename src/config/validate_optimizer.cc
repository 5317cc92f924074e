#include "config/validate_optimizer.h"

#include <cmath>

#include "core/shortest_number.h"
#include "model.pb.h"
#include "program/learning_rate.h"
#include "program/oneof_names.h"
#include "program/optimizer_rule.h"

namespace millrace {
namespace {

void CheckClip(const GradientClip& clip, const std::string& path, Checker& check) {
  switch (clip.kind_case()) {
    case GradientClip::kValue:
      if (clip.has_min_value() && clip.min_value() > clip.value()) {
        check.Error(path + ".min_value", "must not be above value, " + ShortestNumber(clip.value()) + "; " +
                                             ShortestNumber(clip.min_value()));
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
  if (optimizer.has_custom()) {
    CheckClassName(check, path + ".custom", "optimizer", optimizer.custom().class_name(), check.known().optimizers);
  }
  if (optimizer.has_clip()) CheckClip(optimizer.clip(), path + ".clip", check);
  for (const ScheduleProblem& problem : FindScheduleProblems(optimizer.schedule())) {
    check.Error(path + ".schedule." + problem.path, problem.what);
  }
}

}  // namespace millrace
