#pragma once

#include <memory>

#include "device_worker/device_worker.h"

namespace millrace {

/// Trains as a pipeline: the sections of a program run in separate threads, one mini-batch of micro-batches at a time
/// (docs/adr/0005). Each batch of the source is a micro-batch; the last mini-batch of a pass can have fewer. Threads
/// live for one call of Train; the first failure of any ends all after their current operator list.
std::unique_ptr<DeviceWorker> MakeSectionWorker(WorkerParts parts);

}  // namespace millrace
