#include "model/layer_kinds.h"

namespace millrace {

bool LowerCrossMatrix(Lowering& lowering, const LayerPart& part) {
  const CrossLayer& layer = part.desc.cross();
  const std::optional<std::string> in = lowering.Input(part.where, "in", layer.in());
  if (!in) return false;
  const int64_t columns = Columns(lowering, part.where, *in);
  if (columns == 0) return false;
  LayerOps ops(lowering, part);
  std::string x = *in;
  for (int i = 0; i < layer.layers(); ++i) {
    const std::string index = "_" + std::to_string(i);
    std::string left = x;
    if (layer.has_rank()) left = ops.Product(x, "u" + index, "", layer.rank(), ops.Var("low" + index));
    const std::string turned = ops.Product(left, "w" + index, "b" + index, columns, ops.Var("turned" + index));
    const std::string crossed = ops.Binary("elementwise_mul", *in, turned, ops.Var("crossed" + index));
    x = ops.Binary("elementwise_add", crossed, x, i + 1 == layer.layers() ? ops.name() : ops.Var("x" + index));
  }
  return ops.is_whole();
}

}  // namespace millrace
