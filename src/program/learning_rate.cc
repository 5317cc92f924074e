#include "program/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "model.pb.h"
#include "program/field_traits.h"

namespace millrace {
namespace {

/// How far a schedule of `decay_steps` has come, 0 to 1.
double Progress(int64_t step, int64_t decay_steps) {
  return static_cast<double>(std::min(step, decay_steps)) / static_cast<double>(decay_steps);
}

double Quotient(int64_t step, int64_t decay_steps, bool staircase) {
  const double quotient = static_cast<double>(step) / static_cast<double>(decay_steps);
  return staircase ? std::floor(quotient) : quotient;
}

double NoamAt(const LearningRateSchedule::Noam& noam, double base, int64_t step) {
  const auto n = static_cast<double>(step + 1);
  const double rising = n * std::pow(static_cast<double>(noam.warmup_steps()), -1.5);
  return base * std::pow(static_cast<double>(noam.d_model()), -0.5) * std::min(std::pow(n, -0.5), rising);
}

double PolynomialAt(const LearningRateSchedule::Polynomial& polynomial, double base, int64_t step) {
  const double end = polynomial.end_rate();
  int64_t steps = polynomial.decay_steps();
  if (polynomial.cycle()) steps *= std::max<int64_t>(1, (step + steps - 1) / steps);
  return (base - end) * std::pow(1 - Progress(step, steps), static_cast<double>(polynomial.power())) + end;
}

double PiecewiseAt(const LearningRateSchedule::Piecewise& piecewise, int64_t step) {
  int i = 0;
  while (i < piecewise.boundaries_size() && step >= piecewise.boundaries(i)) ++i;
  return piecewise.rates(i);
}

}  // namespace

double LearningRateAt(const LearningRateSchedule& schedule, double base, int64_t step) {
  if (const auto& linear = schedule.linear_warmup(); schedule.has_linear_warmup() && step < linear.steps()) {
    const auto start = static_cast<double>(linear.start_rate());
    return start + (static_cast<double>(linear.end_rate()) - start) * Progress(step, linear.steps());
  }
  const int64_t warmup = schedule.warmup_steps();
  if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const int64_t s = step - warmup;
  switch (schedule.kind_case()) {
    case LearningRateSchedule::kExponential: {
      const auto& e = schedule.exponential();
      return base * std::pow(static_cast<double>(e.decay_rate()), Quotient(s, e.decay_steps(), e.staircase()));
    }
    case LearningRateSchedule::kNaturalExponential: {
      const auto& e = schedule.natural_exponential();
      return base * std::exp(-static_cast<double>(e.decay_rate()) * Quotient(s, e.decay_steps(), e.staircase()));
    }
    case LearningRateSchedule::kInverseTime: {
      const auto& t = schedule.inverse_time();
      return base / (1 + static_cast<double>(t.decay_rate()) * Quotient(s, t.decay_steps(), t.staircase()));
    }
    case LearningRateSchedule::kNoam: return NoamAt(schedule.noam(), base, s);
    case LearningRateSchedule::kPolynomial: return PolynomialAt(schedule.polynomial(), base, s);
    case LearningRateSchedule::kPiecewise: return PiecewiseAt(schedule.piecewise(), s);
    case LearningRateSchedule::kCosine: {
      const auto& c = schedule.cosine();
      const double end = c.end_rate();
      const int64_t stair = s - s % c.stair_steps();
      return end + (base - end) * (1 + std::cos(std::numbers::pi * Progress(stair, c.decay_steps()))) / 2;
    }
    case LearningRateSchedule::KIND_NOT_SET: return base;
  }
  return base;
}

std::vector<ScheduleProblem> FindScheduleProblems(const LearningRateSchedule& schedule) {
  std::vector<ScheduleProblem> problems;
  if (schedule.has_linear_warmup() && schedule.warmup_steps() > 0) {
    problems.push_back({"linear_warmup", "there is a warm-up already, warmup_steps; leave out one of them"});
  }
  const auto& piecewise = schedule.piecewise();
  if (schedule.has_piecewise() && piecewise.rates_size() != piecewise.boundaries_size() + 1) {
    problems.push_back({"piecewise", "piecewise needs one rate more than boundaries; it has " +
                                         std::to_string(piecewise.rates_size()) + " rates and " +
                                         std::to_string(piecewise.boundaries_size()) + " boundaries"});
  }
  for (int i = 0; i < piecewise.boundaries_size(); ++i) {
    const int64_t before = i == 0 ? 0 : piecewise.boundaries(i - 1);
    if (piecewise.boundaries(i) > before) continue;
    problems.push_back({"piecewise.boundaries[" + std::to_string(i) + "]", "boundaries rise from 1 on; " +
                                                                               std::to_string(piecewise.boundaries(i)) +
                                                                               " follows " + std::to_string(before)});
  }
  return problems;
}

Status ValidateSchedule(const LearningRateSchedule& schedule) {
  std::string problems;
  for (const ScheduleProblem& problem : FindScheduleProblems(schedule)) problems += "\n" + problem.what;
  for (const OutOfRange& wrong : FindOutOfRange(schedule)) problems += "\n" + wrong.Where() + " " + wrong.what;
  if (problems.empty()) return Status::Ok();
  return InvalidConfig(problems.substr(1));
}

}  // namespace millrace
