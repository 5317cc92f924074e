#include "model/layer_kinds.h"

namespace millrace {

bool LowerBilinear(Lowering& lowering, const LayerPart& part) {
  const BilinearLayer& layer = part.desc.bilinear();
  const std::optional<SlotVectors> in = VectorsOfSlots(lowering, part, layer.in(), layer.dim());
  if (!in) return false;
  LayerOps ops(lowering, part);
  const std::string vectors = ops.Reshape(in->var, ops.Var("vectors"), {-1, in->slots, in->dim});
  const auto slice = [&](const std::string& x, const std::string& out, int64_t from, int64_t to) {
    return ops.Append("slice", {{"Input", {x}}}, ops.Var(out),
                      {{"axes", std::vector<int64_t>{1}},
                       {"starts", std::vector<int64_t>{from}},
                       {"ends", std::vector<int64_t>{to}}});
  };
  const bool is_shared = layer.matrix() == BilinearLayer::ALL;
  const std::string turned = is_shared ? ops.Product(vectors, "w", "", in->dim, ops.Var("turned")) : "";
  // Slot i against all behind it, at once.
  std::vector<std::string> pairs;
  for (int64_t i = 0; i + 1 < in->slots; ++i) {
    const std::string index = "_" + std::to_string(i);
    std::string left = slice(is_shared ? turned : vectors, "left" + index, i, i + 1);
    if (!is_shared) left = ops.Product(left, "w" + index, "", in->dim, ops.Var("turned" + index));
    const std::string right = slice(vectors, "right" + index, i + 1, in->slots);
    const bool is_only = in->slots == 2;
    pairs.push_back(
        ops.Binary("elementwise_mul", right, left, ops.Var((is_only ? "all" : "pairs") + (is_only ? "" : index))));
  }
  const int64_t count = in->slots * (in->slots - 1) / 2;
  const std::string all =
      pairs.size() == 1 ? pairs[0] : ops.Append("concat", {{"X", pairs}}, ops.Var("all"), {{"axis", int64_t{1}}});
  ops.Reshape(all, ops.name(), {-1, count * in->dim});
  return ops.is_whole();
}

}  // namespace millrace
