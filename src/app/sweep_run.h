#pragma once

#include <stop_token>

#include "app/sweep_jobs.h"
#include "core/status.h"

namespace millrace {

/// Runs the trainings of a sweep, each as a process of this program in a folder of its own below the output folder, as
/// many at a time as there are processors for. What happens is told on standard error; the table of all that ended
/// stands on standard output at the end, and as runs.html in the output folder. One that fails does not keep the others
/// from being run: kIo names those that did. A stop request passes on to the trainings, which leave checkpoints:
/// kCancelled.
Status RunSweep(const SweepRequest& request, const std::stop_token& stop);

/// Says what RunSweep would run, a line a training, once all of it is found sound.
Status ListSweep(const SweepRequest& request, const std::stop_token& stop);

}  // namespace millrace
