#include "framework/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "model.pb.h"

namespace millrace {
namespace {

/// How far a schedule of `decay_steps` has come, 0 to 1.
double Progress(int64_t step, int64_t decay_steps) {
  return static_cast<double>(std::min(step, decay_steps)) / static_cast<double>(decay_steps);
}

double PiecewiseAt(const LearningRateSchedule::Piecewise& piecewise, int64_t step) {
  int i = 0;
  while (i < piecewise.boundaries_size() && step >= piecewise.boundaries(i)) ++i;
  return piecewise.rates(i);
}

void CheckPiecewise(const LearningRateSchedule::Piecewise& piecewise, std::string& problems) {
  if (piecewise.rates_size() != piecewise.boundaries_size() + 1) {
    problems += "\npiecewise: needs one rate more than boundaries; has " + std::to_string(piecewise.rates_size()) +
                " rates and " + std::to_string(piecewise.boundaries_size()) + " boundaries";
  }
  for (int i = 1; i < piecewise.boundaries_size(); ++i) {
    if (piecewise.boundaries(i) > piecewise.boundaries(i - 1)) continue;
    problems += "\npiecewise: boundaries must ascend; " + std::to_string(piecewise.boundaries(i)) + " follows " +
                std::to_string(piecewise.boundaries(i - 1));
  }
  for (const float rate : piecewise.rates()) {
    if (!(rate >= 0)) problems += "\npiecewise: rates must not be negative; " + std::to_string(rate);
  }
}

}  // namespace

double LearningRateAt(const LearningRateSchedule& schedule, double base, int64_t step) {
  const int64_t warmup = schedule.warmup_steps();
  if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const int64_t s = step - warmup;
  switch (schedule.kind_case()) {
    case LearningRateSchedule::kExponential: {
      const auto& e = schedule.exponential();
      double exponent = static_cast<double>(s) / static_cast<double>(e.decay_steps());
      if (e.staircase()) exponent = std::floor(exponent);
      return base * std::pow(static_cast<double>(e.decay_rate()), exponent);
    }
    case LearningRateSchedule::kPolynomial: {
      const auto& p = schedule.polynomial();
      const double end = p.end_rate();
      return (base - end) * std::pow(1 - Progress(s, p.decay_steps()), static_cast<double>(p.power())) + end;
    }
    case LearningRateSchedule::kPiecewise: return PiecewiseAt(schedule.piecewise(), s);
    case LearningRateSchedule::kCosine: {
      const auto& c = schedule.cosine();
      const double end = c.end_rate();
      return end + (base - end) * (1 + std::cos(std::numbers::pi * Progress(s, c.decay_steps()))) / 2;
    }
    case LearningRateSchedule::KIND_NOT_SET: return base;
  }
  return base;
}

Status ValidateSchedule(const LearningRateSchedule& schedule) {
  std::string problems;
  const auto positive = [&problems](const char* what, double value) {
    if (!(value > 0)) problems += std::string("\n") + what + " must be positive; " + std::to_string(value);
  };
  const auto not_negative = [&problems](const char* what, double value) {
    if (!(value >= 0)) problems += std::string("\n") + what + " must not be negative; " + std::to_string(value);
  };
  not_negative("warmup_steps", static_cast<double>(schedule.warmup_steps()));
  switch (schedule.kind_case()) {
    case LearningRateSchedule::kExponential:
      positive("exponential: decay_steps", static_cast<double>(schedule.exponential().decay_steps()));
      positive("exponential: decay_rate", schedule.exponential().decay_rate());
      break;
    case LearningRateSchedule::kPolynomial:
      positive("polynomial: decay_steps", static_cast<double>(schedule.polynomial().decay_steps()));
      positive("polynomial: power", schedule.polynomial().power());
      not_negative("polynomial: end_rate", schedule.polynomial().end_rate());
      break;
    case LearningRateSchedule::kPiecewise: CheckPiecewise(schedule.piecewise(), problems); break;
    case LearningRateSchedule::kCosine:
      positive("cosine: decay_steps", static_cast<double>(schedule.cosine().decay_steps()));
      not_negative("cosine: end_rate", schedule.cosine().end_rate());
      break;
    case LearningRateSchedule::KIND_NOT_SET: break;
  }
  if (problems.empty()) return Status::Ok();
  return InvalidConfig(problems.substr(1));
}

}  // namespace millrace
