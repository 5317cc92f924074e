// A metric that is printed as one of ours is.

#include "plugin/plugin.h"

MILLRACE_PLUGIN(millrace::Registries& registries) { return registries.metrics.Add("Auc", "is never made", {}); }
