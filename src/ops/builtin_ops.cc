#include "ops/builtin_ops.h"

#include "program/op_registry.h"

// The table of contents of this room: one line an operator family, each defined in the file of its name.
// clang-format off
#define MILLRACE_BUILTIN_OPS(X) \
  X(RegisterAccuracy) \
  X(RegisterActivation) \
  X(RegisterAdadelta) \
  X(RegisterAdagrad) \
  X(RegisterAdam) \
  X(RegisterAdamax) \
  X(RegisterAdamw) \
  X(RegisterArgOrder) \
  X(RegisterAssign) \
  X(RegisterAssignValue) \
  X(RegisterAuc) \
  X(RegisterBatchNorm) \
  X(RegisterCalibration) \
  X(RegisterCast) \
  X(RegisterClip) \
  X(RegisterCoalesceTensor) \
  X(RegisterCompare) \
  X(RegisterConcat) \
  X(RegisterControlFlow) \
  X(RegisterConv2d) \
  X(RegisterCreatePyArrayReader) \
  X(RegisterCreateReader) \
  X(RegisterCrossEntropy) \
  X(RegisterCumsum) \
  X(RegisterCvm) \
  X(RegisterDataNorm) \
  X(RegisterDecayedAdagrad) \
  X(RegisterDropout) \
  X(RegisterEinsum) \
  X(RegisterElementary) \
  X(RegisterElementwise) \
  X(RegisterExampleWeights) \
  X(RegisterExpand) \
  X(RegisterFeedFetch) \
  X(RegisterFill) \
  X(RegisterFtrl) \
  X(RegisterFusedFc) \
  X(RegisterFusedSlotsPool) \
  X(RegisterFusedSlotsPoolGrad) \
  X(RegisterGatedRecurrence) \
  X(RegisterGather) \
  X(RegisterHash) \
  X(RegisterHierarchicalSigmoid) \
  X(RegisterHistoryWindow) \
  X(RegisterHuberLoss) \
  X(RegisterIncrement) \
  X(RegisterKldivLoss) \
  X(RegisterLabelSmooth) \
  X(RegisterLamb) \
  X(RegisterLarsMomentum) \
  X(RegisterLayerNorm) \
  X(RegisterLearningRateSchedule) \
  X(RegisterLodReset) \
  X(RegisterLookupTable) \
  X(RegisterMatmul) \
  X(RegisterMomentum) \
  X(RegisterMul) \
  X(RegisterNce) \
  X(RegisterNllLoss) \
  X(RegisterNorm) \
  X(RegisterOneHot) \
  X(RegisterPairwiseLoss) \
  X(RegisterPool2d) \
  X(RegisterPrelu) \
  X(RegisterPrint) \
  X(RegisterRandom) \
  X(RegisterRange) \
  X(RegisterRankingLoss) \
  X(RegisterRead) \
  X(RegisterReduce) \
  X(RegisterReduceCurved) \
  X(RegisterReduceExtreme) \
  X(RegisterReshape) \
  X(RegisterRmsprop) \
  X(RegisterRnn) \
  X(RegisterSaveLoad) \
  X(RegisterScale) \
  X(RegisterScatter) \
  X(RegisterSelect) \
  X(RegisterSelectedRows) \
  X(RegisterSequenceConcat) \
  X(RegisterSequenceConv) \
  X(RegisterSequenceExpand) \
  X(RegisterSequenceOrder) \
  X(RegisterSequencePad) \
  X(RegisterSequencePool) \
  X(RegisterSequenceReshape) \
  X(RegisterSequenceSoftmax) \
  X(RegisterSgd) \
  X(RegisterSlice) \
  X(RegisterSoftmax) \
  X(RegisterSoftmaxWithCrossEntropy) \
  X(RegisterSparseTablePush) \
  X(RegisterSplit) \
  X(RegisterStack) \
  X(RegisterSum) \
  X(RegisterThresholdActivation) \
  X(RegisterTopK) \
  X(RegisterTranspose) \
  X(RegisterTrilTriu) \
  X(RegisterWhereIndex)
// clang-format on

namespace millrace {

#define MILLRACE_DECLARE(function) void function(OpRegistry& registry);
MILLRACE_BUILTIN_OPS(MILLRACE_DECLARE)

void RegisterBuiltinOps(OpRegistry& registry) {
#define MILLRACE_CALL(function) function(registry);
  MILLRACE_BUILTIN_OPS(MILLRACE_CALL)
}

}  // namespace millrace
