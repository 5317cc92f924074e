#include "plugin/plugin.h"

MILLRACE_PLUGIN(millrace::Registries& registries) {
  MR_TRY(registries.feeds.Add("HalfDoneFeed", nullptr));
  return millrace::NotFound("no device on this machine");
}
