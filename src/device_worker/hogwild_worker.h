#pragma once

#include <memory>

#include "device_worker/device_worker.h"

namespace millrace {

/// Trains on parameters shared with other workers, without locks (Recht et al. 2011): gradients use the current
/// parameter values, and updates of two workers may interleave.
std::unique_ptr<DeviceWorker> MakeHogwildWorker(WorkerParts parts);

}  // namespace millrace
