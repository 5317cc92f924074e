#include "model/layer_kinds.h"

namespace millrace {

bool LowerLayerNorm(Lowering& lowering, const LayerPart& part) {
  const LayerNormLayer& layer = part.desc.layer_norm();
  const std::optional<std::string> in = lowering.Input(part.where, "in", layer.in());
  if (!in) return false;
  LayerOps ops(lowering, part);
  const Dims dims = ops.DimsOf(*in);
  if (dims.rank() < 2 || dims[-1] < 1) {
    lowering.Misfit(part.where, "in: \"" + *in + "\" must be [batch, columns]; its shape is " + dims.ToString());
    return false;
  }
  ops.Append("layer_norm",
             {{"X", {*in}},
              {"Scale", {ops.Constant("scale", {dims[-1]}, 1)}},
              {"Bias", {ops.Constant("bias", {dims[-1]}, 0)}}},
             ops.name(), {{"epsilon", layer.epsilon()}, {"begin_norm_axis", int64_t{dims.rank() - 1}}}, "Y",
             {{"Mean", {ops.Var("mean")}}, {"Variance", {ops.Var("variance")}}});
  if (const std::string mask = *in + ".mask"; lowering.main().Has(mask)) {
    ops.Append("assign", {{"X", {mask}}}, ops.Var("mask"));
  }
  return ops.is_whole();
}

}  // namespace millrace
