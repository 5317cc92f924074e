#pragma once

#include <memory>

#include "device_worker/device_worker.h"

namespace millrace {

/// Trains on parameters that it shares with the other workers, without locks (Recht et al. 2011): gradients are
/// computed from what the parameters hold at the time, updates of two workers may interleave.
std::unique_ptr<DeviceWorker> MakeHogwildWorker(WorkerParts parts);

}  // namespace millrace
