#pragma once

#include <memory>

#include "device_worker/device_worker.h"

namespace millrace {

/// Trains in step with the workers of other ranks (dist { update: SYNC }): each step runs its micro-batches on the same
/// parameters and ends with RankStep::Finish. A micro-batch is a batch of a source of its own; the pass ends when no
/// rank has one. `parts.ranks` is set.
std::unique_ptr<DeviceWorker> MakeSyncWorker(WorkerParts parts);

}  // namespace millrace
