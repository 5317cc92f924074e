#include "device_worker/device_worker.h"
#include "device_worker/hogwild_worker.h"
#include "device_worker/section_worker.h"

namespace millrace {

Status RegisterBuiltinWorkers(WorkerRegistry& registry) {
  MR_TRY(registry.Add("HogwildWorker", "runs the program on its batches, beside others and without locks",
                      MakeHogwildWorker));
  return registry.Add("SectionWorker", "runs the sections of a pipeline, each with threads of its own",
                      MakeSectionWorker);
}

}  // namespace millrace
