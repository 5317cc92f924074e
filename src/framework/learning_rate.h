#pragma once

#include <cstdint>

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
/// cosine: end + (base - end) * (1 + cos(pi * min(s, decay_steps) / decay_steps)) / 2.
/// Pure, any thread, no allocation.
double LearningRateAt(const LearningRateSchedule& schedule, double base, int64_t step);

/// kInvalidConfig for steps below 1, rates that are not positive, boundaries that do not ascend or do not fit the
/// number of rates; all at once.
Status ValidateSchedule(const LearningRateSchedule& schedule);

}  // namespace millrace
