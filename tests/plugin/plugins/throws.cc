#include <stdexcept>

#include "plugin/plugin.h"

MILLRACE_PLUGIN(millrace::Registries& registries) {
  registries.ops.Add("half_done").Doc("Is never there.");
  throw std::runtime_error("no licence found");
}
