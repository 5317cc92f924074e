// An optimizer of a user's own, for dense and sparse gradients, with an attribute and a state.

#include <cmath>

#include "ops/optimizer/optimizer_kernel.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

struct SignStep {
  float lr, decay;
};

/// Moves each weight by the rate, against the sign of a decaying mean of its gradients.
struct SignDescent {
  static constexpr std::array<StateInfo, 1> kStates{
      {{"Mean", "MeanOut", "decaying mean of gradients", "mean", "initial_mean"}}};
  static constexpr std::array<StateInfo, 0> kScalars{};
  float decay;

  explicit SignDescent(const OpView& op) : decay(op.Float("decay")) {}
  SignStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const { return {lr, decay}; }
  bool DecaysAllRows() const { return true; }
  static void Row(const racy::Kernels& kernels, const SignStep& s, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    UpdateInPieces<1>(kernels, grads, w, states, n, [&s](float grad, float& weight, std::array<float, 1>& mean) {
      mean[0] = s.decay * mean[0] + (1 - s.decay) * grad;
      if (mean[0] != 0) weight -= std::copysign(s.lr, mean[0]);
    });
  }
};

/// An operator that is no update, though it says so.
Status InferNothing(InferShapeContext&) { return Status::Ok(); }
class NoKernel : public BoundKernel<NoKernel> {
 public:
  Status Bind(KernelContext&) { return Status::Ok(); }
  Status Run(const RunContext&) override { return Status::Ok(); }
};

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  AddOptimizer<SignDescent, false>(
      registries.ops, "sign_descent", "Mean = decay * Mean + (1 - decay) * Grad; Param -= LearningRate * sign(Mean).",
      [](OpBuilder& op) {
        op.Attr("decay", 0.9F, "share of the mean that stays").Attr("initial_mean", 0.0F, "what the mean starts from");
      });
  registries.ops.Add("no_update")
      .Doc("Does nothing.")
      .Input("X", "any")
      .InferShape(InferNothing)
      .Optimizer()
      .Kernel<NoKernel>();
  return Status::Ok();
}
