#include "program/model_defaults.h"

namespace millrace {

Initializer InitOf(const TableDesc& table) {
  Initializer init = table.init();
  if (init.kind_case() == Initializer::KIND_NOT_SET) init.set_uniform(0.01f);
  return init;
}

Initializer InitOf(const FcLayer& layer) {
  Initializer init = layer.init();
  if (!layer.has_init()) init.set_xavier(true);
  return init;
}

Initializer BiasInitOf(const FcLayer& layer) {
  Initializer init = layer.bias_init();
  if (!layer.has_bias_init()) init.set_constant(0);
  return init;
}

}  // namespace millrace
