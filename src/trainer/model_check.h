#pragma once

#include <cstdint>

#include "job/job_session.h"
#include "job/run_hooks.h"

namespace millrace {

/// kBadData, with what to do about it, when a parameter, a table or an optimizer's state of the job holds a NaN or an
/// infinite value: such a model is not to take the place of a good one, and the last checkpoint is named. Ok with
/// allow_non_finite. Reads every value once after a step, and notes that in `report`: what is asked for several times
/// at a pass's end costs one look. Nobody may train meanwhile.
Status CheckToBeSaved(const JobSession& session, int64_t step, RunReport* report);

/// `failure`, after which the parameters are of no use, with a line that names the checkpoint of `step` as one from
/// before it. Step 0: there is none, and the failure comes back as it is.
Status NameCheckpoint(const Status& failure, int64_t step);

}  // namespace millrace
