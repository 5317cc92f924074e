#include "program/model_defaults.h"

namespace millrace {

int DimOf(const TableDesc& table) {
  constexpr int kBeforeEmbedx = 3;  // show, click, embed
  if (!table.has_accessor()) return table.dim();
  return static_cast<int>(table.accessor().embedx_dim()) + kBeforeEmbedx;
}

int SlotWidthOf(const EmbeddingLayer& layer, const TableDesc& table) {
  constexpr int kCounts = 2;
  return DimOf(table) - (table.has_accessor() && !layer.use_cvm() ? kCounts : 0);
}

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
