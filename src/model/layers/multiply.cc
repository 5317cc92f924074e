#include "model/layer_kinds.h"

namespace millrace {

bool LowerMultiply(Lowering& lowering, const LayerPart& part) {
  const MultiplyLayer& layer = part.desc.multiply();
  std::vector<std::string> inputs;
  for (const std::string& in : layer.in()) {
    if (const std::optional<std::string> input = lowering.Input(part.where, "in", in)) inputs.push_back(*input);
  }
  if (layer.in_size() < 2) {
    lowering.Problem(part.where, "in: needs two inputs or more; it has " + std::to_string(layer.in_size()));
    return false;
  }
  if (static_cast<int>(inputs.size()) < layer.in_size()) return false;
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
    lowering.Problem(part.where, "in: shapes differ: \"" + inputs[0] + "\" is " + ops.DimsOf(inputs[0]).ToString() +
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
