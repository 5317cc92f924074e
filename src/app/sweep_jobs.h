#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "app/sweep_plan.h"
#include "core/status.h"
#include "metrics/metric.h"
#include "trainer_desc.pb.h"

namespace millrace {

/// What `trainer --sweep=FILE` is asked for.
struct SweepRequest {
  std::string file;                    ///< the sweep
  std::string trainer_desc;            ///< the job's file
  std::vector<std::string> overrides;  ///< of all trainings
  std::string output_dir;              ///< empty: that of the job
  std::string resume;                  ///< "auto" or "never"
};

/// One training of a sweep.
struct SweepJob {
  std::string name;  ///< of its folder
  std::vector<std::string> overrides;
  TrainerDesc desc;  ///< as it is to run
};

/// A sweep whose jobs were read and compiled.
struct PlannedSweep {
  Sweep sweep;
  std::vector<SweepJob> jobs;  ///< trial by trial, a seed after the other; as many of each trial
  std::vector<int> rounds;     ///< epochs after which the rounds of a halving end; empty: there is none
  std::string metric;          ///< that is to be good; empty: the job has none
  MetricBetter better = MetricBetter::kHigher;
  std::string output_dir;
  std::string warnings;  ///< of the job
};

/// Reads the job and the sweep, and each training's job, so that a mistake in any of them is told before one runs:
/// kInvalidConfig, with the trial where it is not the job's own. Reads no data. kCancelled.
Result<PlannedSweep> PlanSweep(const SweepRequest& request, const std::stop_token& stop);

/// The sweep for the scripts of python/runs, which run it: the rule by which trials are compared, the rounds with a
/// fingerprint of each trial's jobs, and the jobs. Overrides are UTF-8, as jobs are.
std::string PlanAsJson(const PlannedSweep& plan);

}  // namespace millrace
