#include "model/layer_kinds.h"

namespace millrace {

bool LowerAttention(Lowering& lowering, const LayerPart& part) {
  const AttentionLayer& layer = part.desc.attention();
  const std::optional<SequenceInput> in = Sequence(lowering, part, "in", layer.in());
  std::optional<std::string> query;
  if (layer.query().empty()) {
    lowering.Missing(part.where, "query: an attention layer needs a query, the candidate: query: \"item\"");
  } else {
    query = lowering.Input(part.where, "query", layer.query());
  }
  if (layer.act() == NONE || layer.act() == SOFTMAX) {
    lowering.Problem(part.where, "act: RELU, SIGMOID or TANH follows a hidden layer of the network");
    return false;
  }
  if (!in || !query) return false;
  LayerOps ops(lowering, part);
  const Dims& asked = ops.DimsOf(*query);
  if (asked.rank() != 2 || asked[1] != in->columns) {
    lowering.Misfit(part.where, "query: query must be [batch, " + std::to_string(in->columns) +
                                    "], as the places of \"" + in->var + "\"; \"" + *query + "\" is " +
                                    asked.ToString());
    return false;
  }
  const std::string one = ops.Reshape(*query, ops.Var("query"), {-1, 1, in->columns});
  const std::string each = ops.Append("expand_v2", {{"X", {one}}}, ops.Var("queries"),
                                      {{"shape", std::vector<int64_t>{-1, in->places, in->columns}}});
  const std::string difference = ops.Binary("elementwise_sub", in->var, one, ops.Var("difference"));
  const std::string product = ops.Binary("elementwise_mul", in->var, one, ops.Var("product"));
  std::string x =
      ops.Append("concat", {{"X", {in->var, each, difference, product}}}, ops.Var("features"), {{"axis", int64_t{2}}});
  for (int i = 0; i < layer.units_size(); ++i) {
    const std::string index = std::to_string(i);
    x = ops.Product(x, "w_" + index, "b_" + index, layer.units(i), ops.Var("hidden_" + index));
    x = ops.Activate(x, ops.Var("active_" + index), layer.act());
  }
  const std::string index = std::to_string(layer.units_size());
  x = ops.Product(x, "w_" + index, "b_" + index, 1, ops.Var("score"));
  std::string weights = ops.Reshape(x, ops.Var("scores"), {-1, in->places});
  if (layer.softmax()) {
    // Places without anything are so far below the others that they get nothing.
    const std::string far = ops.Scale(in->mask, ops.Var("below"), 1e9F, -1e9F);
    weights = ops.Binary("elementwise_add", weights, far, ops.Var("held"));
    weights = ops.Append("softmax", {{"X", {weights}}}, ops.Var("shares"), {{"axis", int64_t{-1}}});
  }
  const bool is_pooled = layer.output() == AttentionLayer::POOLED;
  weights = ops.Binary("elementwise_mul", weights, in->mask, is_pooled ? ops.Var("weights") : ops.name());
  if (!is_pooled) return ops.is_whole();
  const std::string row = ops.Reshape(weights, ops.Var("row"), {-1, 1, in->places});
  ops.Reshape(ops.MatMul(row, in->var, ops.Var("sum")), ops.name(), {-1, in->columns});
  return ops.is_whole();
}

}  // namespace millrace
