#include <cmath>

#include "model/layer_kinds.h"

namespace millrace {
namespace {

/// The input as places: a sequence, or the slots of an embedding layer, all of which hold something (no mask).
std::optional<SequenceInput> PlacesOf(Lowering& lowering, const LayerPart& part, LayerOps& ops) {
  const std::string& in = part.desc.self_attention().in();
  if (lowering.EmbeddingDim(in) == 0) return Sequence(lowering, part, "in", in);
  const std::optional<SlotVectors> slots = VectorsOfSlots(lowering, part, in, 0);
  if (!slots) return std::nullopt;
  return SequenceInput{ops.Reshape(slots->var, ops.Var("places"), {-1, slots->slots, slots->dim}), "", slots->slots,
                       slots->dim};
}

}  // namespace

bool LowerSelfAttention(Lowering& lowering, const LayerPart& part) {
  const SelfAttentionLayer& layer = part.desc.self_attention();
  LayerOps ops(lowering, part);
  const std::optional<SequenceInput> in = PlacesOf(lowering, part, ops);
  if (!in) return false;
  const int64_t units = layer.has_units() ? layer.units() : in->columns;
  const int64_t heads = layer.heads();
  if (units % heads != 0) {
    lowering.Misfit(part.where, "heads: " + std::to_string(heads) + " heads do not divide the " +
                                    std::to_string(units) + " columns of the output");
    return false;
  }
  const int64_t width = units / heads;
  // [batch, heads, places, width]
  const auto split = [&](const char* part_name) {
    const std::string name = part_name;
    const std::string all = ops.Product(in->var, "w_" + name, "", units, ops.Var(name));
    const std::string apart = ops.Reshape(all, ops.Var(name + "_apart"), {-1, in->places, heads, width});
    return ops.Transpose(apart, ops.Var(name + "_heads"), {0, 2, 1, 3});
  };
  const std::string query = split("query");
  const std::string key = split("key");
  const std::string value = split("value");
  std::string scores = ops.Scale(ops.MatMul(query, key, ops.Var("products"), true), ops.Var("scores"),
                                 1 / std::sqrt(static_cast<float>(width)));
  if (!in->mask.empty()) {
    const std::string far = ops.Scale(in->mask, ops.Var("below"), 1e9F, -1e9F);
    scores = ops.Binary("elementwise_add", scores, ops.Reshape(far, ops.Var("below_all"), {-1, 1, 1, in->places}),
                        ops.Var("held"));
  }
  const std::string shares = ops.Append("softmax", {{"X", {scores}}}, ops.Var("shares"), {{"axis", int64_t{-1}}});
  const std::string seen =
      ops.Transpose(ops.MatMul(shares, value, ops.Var("seen")), ops.Var("seen_places"), {0, 2, 1, 3});
  const bool is_sequence = !in->mask.empty();
  const std::string out = is_sequence ? ops.name() : ops.Var("all");
  const std::string mixed = ops.Reshape(seen, layer.residual() ? ops.Var("mixed") : out, {-1, in->places, units});
  if (layer.residual()) {
    const std::string own =
        units == in->columns ? in->var : ops.Product(in->var, "w_residual", "", units, ops.Var("residual"));
    ops.Binary("elementwise_add", mixed, own, out);
  }
  if (is_sequence) {
    ops.Append("assign", {{"X", {in->mask}}}, ops.Var("mask"));
  } else {
    ops.Reshape(out, ops.name(), {-1, in->places * units});  // slots side by side, as they came
  }
  return ops.is_whole();
}

}  // namespace millrace
