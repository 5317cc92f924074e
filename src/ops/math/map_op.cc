#include "ops/math/map_op.h"

namespace millrace {

Status InferMap(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  context.SetOutput("Out", x);
  return Status::Ok();
}

Status InferNumberMap(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  context.SetOutput("Out", x);
  return Status::Ok();
}

}  // namespace millrace
