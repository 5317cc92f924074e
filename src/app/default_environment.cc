#include "app/default_environment.h"

#include "datafeed/multi_slot_reader.h"
#include "ops/builtin_ops.h"
#include "reader/builtin_formats.h"
#include "trainer/trainer.h"

namespace millrace {

Result<Environment> MakeDefaultEnvironment() {
  Environment environment;
  RegisterBuiltinOps(environment.ops);
  MR_TRY(environment.ops.Seal());
  MR_TRY(RegisterBuiltinFormats(environment.readers));
  MR_TRY(environment.readers.Add(MultiSlotFormat()));
  environment.feeds = DataFeedFactory::Builtin();
  environment.datasets = DatasetFactory::Builtin();
  RegisterBuiltinWorkers(environment.workers);
  return environment;
}

KnownNames NamesOf(const Environment& environment) {
  KnownNames names;
  names.trainers = TrainerNames();
  names.device_workers = environment.workers.names();
  names.datasets = environment.datasets.names();
  names.data_feeds = environment.feeds.names();
  for (const OpInfo* op : environment.ops.all()) names.operators.push_back(op->type);
  return names;
}

}  // namespace millrace
