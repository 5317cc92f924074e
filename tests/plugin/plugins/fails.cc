#include "plugin/plugin.h"

MILLRACE_PLUGIN(millrace::Registries& registries) {
  MR_TRY(registries.feeds.Add("MultiSlotDataFeed", nullptr));
  return millrace::Status::Ok();
}
