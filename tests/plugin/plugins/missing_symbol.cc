#include "plugin/plugin.h"

namespace millrace {

/// Nobody defines it.
Status RegisterOpsOfTomorrow(OpRegistry& registry, int version);

}  // namespace millrace

MILLRACE_PLUGIN(millrace::Registries& registries) { return millrace::RegisterOpsOfTomorrow(registries.ops, 2); }
