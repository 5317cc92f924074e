#include "model/layer_kinds.h"

namespace millrace {

bool LowerMultiply(Lowering& lowering, const LayerPart& part) {
  const MultiplyLayer& layer = part.desc.multiply();
  std::optional<std::vector<std::string>> in = lowering.Inputs(part.where, layer.in(), 2);
  if (!in) return false;
  std::vector<std::string>& inputs = *in;
  LayerOps ops(lowering, part);
  const auto is_column = [&ops](const std::string& var) {
    return ops.DimsOf(var).rank() == 2 && ops.DimsOf(var)[1] == 1;
  };
  // The widest first: the others are repeated along it.
  for (std::string& input : inputs) {
    if (is_column(inputs[0]) && !is_column(input)) std::swap(inputs[0], input);
  }
  for (const std::string& input : inputs) {
    if (is_column(input) || ops.DimsOf(input) == ops.DimsOf(inputs[0])) continue;
    lowering.Misfit(part.where, "in: shapes differ: \"" + inputs[0] + "\" is " + ops.DimsOf(inputs[0]).ToString() +
                                    ", \"" + input + "\" is " + ops.DimsOf(input).ToString());
    return false;
  }
  std::string product = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    const std::string out = i + 1 == inputs.size() ? ops.name() : ops.Var("product_" + std::to_string(i));
    product = ops.Binary("elementwise_mul", product, inputs[i], out);
  }
  return ops.is_whole();
}

}  // namespace millrace
