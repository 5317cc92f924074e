#include "plugin/plugin.h"

MILLRACE_PLUGIN(millrace::Registries& registries) {
  MR_TRY(registries.feeds.Add("HalfDoneFeed", "none", {}));
  return millrace::NotFound("no device on this machine");
}
