#include "ops/builtin_ops.h"

#include "framework/op_registry.h"

// The table of contents of this room: one line an operator family, each defined in the file of its name.
// clang-format off
#define MILLRACE_BUILTIN_OPS(X) \
  X(RegisterAccuracy) \
  X(RegisterActivation) \
  X(RegisterAdagrad) \
  X(RegisterAdam) \
  X(RegisterAssign) \
  X(RegisterAuc) \
  X(RegisterCast) \
  X(RegisterClip) \
  X(RegisterConcat) \
  X(RegisterControlFlow) \
  X(RegisterCrossEntropy) \
  X(RegisterDropout) \
  X(RegisterElementwise) \
  X(RegisterFeedFetch) \
  X(RegisterFill) \
  X(RegisterFtrl) \
  X(RegisterFusedFc) \
  X(RegisterFusedSlotsPool) \
  X(RegisterFusedSlotsPoolGrad) \
  X(RegisterIncrement) \
  X(RegisterLeakyRelu) \
  X(RegisterLearningRateSchedule) \
  X(RegisterLessThan) \
  X(RegisterLookupTable) \
  X(RegisterMatmul) \
  X(RegisterMomentum) \
  X(RegisterMul) \
  X(RegisterPairwiseLoss) \
  X(RegisterPrint) \
  X(RegisterRandom) \
  X(RegisterReduce) \
  X(RegisterReshape) \
  X(RegisterScale) \
  X(RegisterSequencePool) \
  X(RegisterSgd) \
  X(RegisterSlice) \
  X(RegisterSoftmax) \
  X(RegisterSoftmaxWithCrossEntropy) \
  X(RegisterSparseTablePush) \
  X(RegisterSum) \
  X(RegisterTopK)
// clang-format on

namespace millrace {

#define MILLRACE_DECLARE(function) void function(OpRegistry& registry);
MILLRACE_BUILTIN_OPS(MILLRACE_DECLARE)

void RegisterBuiltinOps(OpRegistry& registry) {
#define MILLRACE_CALL(function) function(registry);
  MILLRACE_BUILTIN_OPS(MILLRACE_CALL)
}

}  // namespace millrace
