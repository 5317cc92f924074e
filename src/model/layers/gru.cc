#include "model/layer_kinds.h"

namespace millrace {

bool LowerGru(Lowering& lowering, const LayerPart& part) {
  const GruLayer& layer = part.desc.gru();
  const std::optional<SequenceInput> in = Sequence(lowering, part, "in", layer.in());
  if (!layer.has_units()) {
    lowering.Missing(part.where, "units: a gru layer needs units, the columns of its state: units: 32");
  }
  std::optional<std::string> attention;
  if (!layer.attention().empty()) attention = lowering.Input(part.where, "attention", layer.attention());
  if (!in || !layer.has_units() || (!layer.attention().empty() && !attention)) return false;
  LayerOps ops(lowering, part);
  const int64_t units = layer.units();
  Bound inputs = {{"X", {ops.Product(in->var, "w", "b", 3 * units, ops.Var("gates"))}},
                  {"Mask", {in->mask}},
                  {"Weight", {ops.Weight("u", {units, 3 * units})}}};
  if (attention) {
    const Dims& dims = ops.DimsOf(*attention);
    if (dims.rank() != 2 || dims[1] != in->places) {
      lowering.Misfit(part.where, "attention: attention must be [batch, " + std::to_string(in->places) +
                                      "], an attention layer of \"" + in->var + "\" with output: WEIGHTS; \"" +
                                      *attention + "\" is " + dims.ToString());
      return false;
    }
    inputs.push_back({"Attention", {*attention}});
  }
  ops.Append("gated_recurrence", inputs, ops.name(), {}, "Hidden");
  ops.Append("assign", {{"X", {in->mask}}}, ops.Var("mask"));
  return ops.is_whole();
}

}  // namespace millrace
