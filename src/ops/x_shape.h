#pragma once

#include "program/op_registry.h"

namespace millrace {

/// Paddle's XShape: no values, but 0 and then the sizes of X, for a gradient that does not need X itself.
inline Dims XShapeOf(const Dims& x) {
  Dims shape{0};
  for (const int64_t size : x.sizes()) shape.push_back(size);
  return shape;
}

/// The sizes of X; none when `x_shape` was never written.
inline Dims XOfXShape(const Dims& x_shape) { return x_shape.rank() == 0 ? Dims() : Dims(x_shape.sizes().subspan(1)); }

/// Shape rule of gradients that read XShape: X@GRAD is described like X.
inline Status InferFromXShape(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("XShape"));
  if (x.dims.rank() == 0) return context.Error("input XShape has no axes, but it is 0 and then the sizes of X");
  x.dims = XOfXShape(x.dims);
  context.SetOutput("X@GRAD", x);
  return Status::Ok();
}

}  // namespace millrace
