#include "model/layer_kinds.h"

namespace millrace {

bool LowerBatchNorm(Lowering& lowering, const LayerPart& part) {
  const BatchNormLayer& layer = part.desc.batch_norm();
  const std::optional<std::string> in = lowering.Input(part.where, "in", layer.in());
  if (!in) return false;
  LayerOps ops(lowering, part);
  const Dims dims = ops.DimsOf(*in);
  if (dims.rank() != 2 || dims[1] < 1) {
    lowering.Misfit(part.where, "in: \"" + *in + "\" must be [batch, columns]; its shape is " + dims.ToString());
    return false;
  }
  const std::string mean = ops.Var("mean");
  const std::string variance = ops.Var("variance");
  lowering.AddState(part.where, mean, {dims[1]}, 0);
  lowering.AddState(part.where, variance, {dims[1]}, 1);
  ops.Append("batch_norm",
             {{"X", {*in}},
              {"Scale", {ops.Constant("scale", {dims[1]}, 1)}},
              {"Bias", {ops.Constant("bias", {dims[1]}, 0)}},
              {"Mean", {mean}},
              {"Variance", {variance}}},
             ops.name(), {{"epsilon", layer.epsilon()}, {"momentum", layer.momentum()}, {"is_test", false}}, "Y",
             {{"MeanOut", {mean}},
              {"VarianceOut", {variance}},
              {"SavedMean", {ops.Var("batch_mean")}},
              {"SavedVariance", {ops.Var("batch_deviation")}}});
  return ops.is_whole();
}

}  // namespace millrace
