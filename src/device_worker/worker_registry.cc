#include "device_worker/device_worker.h"
#include "device_worker/hogwild_worker.h"
#include "device_worker/section_worker.h"

namespace millrace {

Status RegisterBuiltinWorkers(WorkerRegistry& registry) {
  MR_TRY(registry.Add("HogwildWorker", "runs the program on its batches, beside others and without locks",
                      MakeHogwildWorker));
  // Paddle's workers for tables on servers: here tables are in the process, and the loop is the same. Names from
  // trainer_desc.prototxt, and those that fleet sets.
  for (const char* name :
       {"DownpourWorker", "DownpourWorkerOpt", "DownpourLiteWorker", "DownpourSGD", "DownpourSGDOPT", "DownpourLite"}) {
    MR_TRY(registry.Add(name, "Paddle's name of a HogwildWorker whose tables are on servers", MakeHogwildWorker));
  }
  return registry.Add("SectionWorker", "runs the sections of a pipeline, each with threads of its own",
                      MakeSectionWorker);
}

}  // namespace millrace
