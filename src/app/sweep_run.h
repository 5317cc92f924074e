#pragma once

#include <stop_token>

#include "app/sweep_jobs.h"
#include "core/status.h"

namespace millrace {

/// Reads and checks a sweep, and becomes the scripts of python/runs, which run its trainings, each as a process of this
/// program in a folder of its own below the output folder. Signals of a StopOnSignal stay blocked until the scripts
/// handle them. Returns only a failure: PlanSweep's, MakeOutputFolder's, BecomeRunsScript's.
Status RunSweep(const SweepRequest& request, const std::stop_token& stop);

/// Says what RunSweep would run, a line a training, once all of it is found sound.
Status ListSweep(const SweepRequest& request, const std::stop_token& stop);

}  // namespace millrace
