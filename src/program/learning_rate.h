#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

class LearningRateSchedule;

/// The learning rate of batch `step` (from 0) when the configured rate is `base`.
///
/// Warm-up: base * (step + 1) / warmup_steps while step < warmup_steps; the schedule then counts from there, as step 0.
/// With s = step - warmup_steps:
/// exponential: base * decay_rate^(s / decay_steps), the quotient floored with `staircase`;
/// polynomial: (base - end) * (1 - min(s, decay_steps) / decay_steps)^power + end;
/// piecewise: rates[i] for the first boundary[i] > s, else the last rate;
/// cosine: end + (base - end) * (1 + cos(pi * min(s, decay_steps) / decay_steps)) / 2, s rounded down to stair_steps;
/// natural_exponential: base * exp(-decay_rate * s / decay_steps);
/// inverse_time: base / (1 + decay_rate * s / decay_steps); both with the quotient floored with `staircase`;
/// noam: base * d_model^-0.5 * min(n^-0.5, n * warmup_steps^-1.5), n = s + 1.
/// With polynomial's `cycle`, decay_steps is the next multiple of it that s does not exceed.
/// linear_warmup: start_rate + (end_rate - start_rate) * step / steps while step < steps; the schedule counts all
/// steps. Pure, any thread, no allocation.
double LearningRateAt(const LearningRateSchedule& schedule, double base, int64_t step);

/// A mistake in a schedule, and the path of the field that has it: "piecewise.boundaries[1]".
struct ScheduleProblem {
  std::string path;
  std::string what;
};

/// The mistakes that the ranges of the fields (program/field_traits.h) do not show: two warm-ups, boundaries that do
/// not rise or do not fit the number of rates.
std::vector<ScheduleProblem> FindScheduleProblems(const LearningRateSchedule& schedule);

/// kInvalidConfig that says all of them, and every number that is out of its field's range.
Status ValidateSchedule(const LearningRateSchedule& schedule);

}  // namespace millrace
