#pragma once

#include <memory>

#include "device_worker/device_worker.h"

namespace millrace {

/// Trains as a pipeline: the sections of a program run in threads of their own, a mini-batch of micro-batches at a time
/// (docs/adr/0005). Each batch of the source is a micro-batch; the last mini-batch of a pass may have fewer. Threads
/// live as long as a call of Train; the first failure of any ends all of them after their current operator list.
std::unique_ptr<DeviceWorker> MakeSectionWorker(WorkerParts parts);

}  // namespace millrace
