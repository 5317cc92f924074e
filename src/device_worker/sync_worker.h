#pragma once

#include <memory>

#include "device_worker/device_worker.h"

namespace millrace {

/// Trains in step with the workers of other ranks (dist { update: SYNC }): all micro-batches of a step use the same
/// parameters, and the step ends with RankStep::Finish. Each micro-batch has its own source; the pass ends when no rank
/// has a batch. `parts.ranks` must be set.
std::unique_ptr<DeviceWorker> MakeSyncWorker(WorkerParts parts);

}  // namespace millrace
