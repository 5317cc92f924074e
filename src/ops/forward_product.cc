#include "ops/forward_product.h"

namespace millrace {

GemmSpec ForwardProduct(const KernelContext& context, std::string_view right, GemmSpec form) {
  form.bf16 = context.options().bf16;
  form.batch_invariant = context.options().read_only;
  if (!right.empty()) form.weights = context.PackedWeightsOf(right);
  return form;
}

}  // namespace millrace
