#include "model/layer_kinds.h"

namespace millrace {

bool LowerCin(Lowering& lowering, const LayerPart& part) {
  const CinLayer& layer = part.desc.cin();
  const std::optional<SlotVectors> in = VectorsOfSlots(lowering, part, layer.in(), layer.dim());
  if (layer.units().empty())
    lowering.Missing(part.where, "units: a cin layer needs units, the vectors of each: units: [32, 32]");
  if (!in || layer.units().empty()) return false;
  LayerOps ops(lowering, part);
  // [batch, 1, slots, dim] and, for each layer, [batch, vectors, 1, dim]: their product has every pair.
  const std::string slots = ops.Reshape(in->var, ops.Var("slots"), {-1, 1, in->slots, in->dim});
  std::string x = ops.Reshape(in->var, ops.Var("vectors"), {-1, in->slots, 1, in->dim});
  int64_t vectors = in->slots;
  std::vector<std::string> sums;
  for (int i = 0; i < layer.units_size(); ++i) {
    const std::string index = "_" + std::to_string(i);
    const std::string pairs = ops.Binary("elementwise_mul", x, slots, ops.Var("pairs" + index));
    const std::string listed = ops.Reshape(pairs, ops.Var("listed" + index), {-1, vectors * in->slots, in->dim});
    const std::string columns = ops.Transpose(listed, ops.Var("columns" + index), {0, 2, 1});
    const std::string mixed = ops.Product(columns, "w" + index, "", layer.units(i), ops.Var("mixed" + index));
    sums.push_back(ops.Append("reduce_sum", {{"X", {mixed}}},
                              layer.units_size() == 1 ? ops.name() : ops.Var("sum" + index),
                              {{"dim", std::vector<int64_t>{1}}, {"keep_dim", false}, {"reduce_all", false}}));
    vectors = layer.units(i);
    if (i + 1 == layer.units_size()) break;
    const std::string back = ops.Transpose(mixed, ops.Var("back" + index), {0, 2, 1});
    x = ops.Reshape(back, ops.Var("vectors" + index), {-1, vectors, 1, in->dim});
  }
  if (sums.size() > 1) ops.Append("concat", {{"X", sums}}, ops.name(), {{"axis", int64_t{1}}});
  return ops.is_whole();
}

}  // namespace millrace
