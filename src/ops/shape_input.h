#pragma once

#include "ops/int_list_input.h"

namespace millrace {

/// Shape of what an operator makes from nothing: ShapeTensor, ShapeTensorList or the attribute `shape`.
///
/// At compile time; sizes that tensors bring are -1. kInvalidConfig for a size below 0, for too many axes, and for more
/// values than a machine holds.
Result<Dims> ReadShape(const InferShapeContext& context);
/// The same of an operator that has the attribute alone.
Result<Dims> ReadShapeAttr(const InferShapeContext& context);

/// Declares the inputs and the attribute.
void AddShape(OpBuilder& op);

/// The shape of each batch.
class ShapeInput {
 public:
  static Result<ShapeInput> Bind(const KernelContext& context);
  /// kBadData for a shape that ReadShape would have refused.
  Result<Dims> Read();

 private:
  IntListInput sizes_;
};

}  // namespace millrace
