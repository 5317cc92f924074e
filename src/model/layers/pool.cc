#include "model/layer_kinds.h"

namespace millrace {

bool LowerPool(Lowering& lowering, const LayerPart& part) {
  const PoolLayer& layer = part.desc.pool();
  const std::optional<SequenceInput> in = Sequence(lowering, part, "in", layer.in());
  if (layer.type() != SUM && layer.type() != AVERAGE && layer.type() != LAST) {
    lowering.Problem(part.where, "type: " + Pool_Name(layer.type()) + " is not for sequences; SUM, AVERAGE or LAST");
    return false;
  }
  if (!in) return false;
  LayerOps ops(lowering, part);
  std::string weights = in->mask;
  if (layer.type() == LAST) {
    // The last place is the one that holds something where the next one does not: mask[t] - mask[t + 1].
    const auto slice = [&](const char* name, int64_t from, int64_t to) {
      return ops.Append("slice", {{"Input", {in->mask}}}, ops.Var(name),
                        {{"axes", std::vector<int64_t>{1}},
                         {"starts", std::vector<int64_t>{from}},
                         {"ends", std::vector<int64_t>{to}}});
    };
    std::string next = ops.Scale(slice("end", in->places - 1, in->places), ops.Var("nothing"), 0);
    if (in->places > 1) {
      next = ops.Append("concat", {{"X", {slice("behind", 1, in->places), next}}}, ops.Var("next"),
                        {{"axis", int64_t{1}}});
    }
    weights = ops.Binary("elementwise_sub", in->mask, next, ops.Var("weights"));
  }
  if (layer.type() == AVERAGE) {
    const std::string count = ops.Append("reduce_sum", {{"X", {in->mask}}}, ops.Var("count"),
                                         {{"dim", std::vector<int64_t>{1}}, {"keep_dim", true}, {"reduce_all", false}});
    weights = ops.Binary("elementwise_div", in->mask,
                         ops.Append("clip", {{"X", {count}}}, ops.Var("divisor"), {{"min", 1.0F}, {"max", 1e9F}}),
                         ops.Var("weights"));
  }
  const std::string row = ops.Reshape(weights, ops.Var("row"), {-1, 1, in->places});
  const std::string sum = ops.MatMul(row, in->var, ops.Var("sum"));
  ops.Reshape(sum, ops.name(), {-1, in->columns});
  return ops.is_whole();
}

}  // namespace millrace
