#pragma once

#include <cstdint>
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
  size_t trial = 0;  ///< of Sweep::trials
  std::vector<std::string> overrides;
  TrainerDesc desc;  ///< as it is to run
};

/// A sweep whose jobs were read and compiled.
struct PlannedSweep {
  Sweep sweep;
  std::vector<SweepJob> jobs;  ///< trial by trial, a seed after the other
  std::vector<int> rounds;     ///< epochs after which the rounds of a halving end; empty: there is none
  std::string metric;          ///< that is to be good; empty: the job has none
  MetricBetter better = MetricBetter::kHigher;
  std::string output_dir;
  std::string warnings;  ///< of the job
};

/// Reads the job and the sweep, and each training's job, so that a mistake in any of them is told before one runs:
/// kInvalidConfig, with the trial where it is not the job's own. Reads no data. kCancelled.
Result<PlannedSweep> PlanSweep(const SweepRequest& request, const std::stop_token& stop);

/// Whether the run in `folder` has done what the job asks for.
bool HasFinished(const std::string& folder, const SweepJob& job);

}  // namespace millrace
