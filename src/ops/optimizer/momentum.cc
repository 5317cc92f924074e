#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

struct MomentumStep {
  float lr, mu, decay;
  bool nesterov;
};

struct Momentum {
  static constexpr std::array<StateInfo, 1> kStates{
      {{"Velocity", "VelocityOut", "decaying sum of gradients", "velocity"}}};
  static constexpr std::array<StateInfo, 0> kScalars{};
  MomentumStep step;

  explicit Momentum(const OpView& op)
      : step{0, op.Float("mu"), op.String("regularization_method").empty() ? 0 : op.Float("regularization_coeff"),
             op.Bool("use_nesterov")} {}
  MomentumStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const {
    MomentumStep now = step;
    now.lr = lr;
    return now;
  }
  bool DecaysAllRows() const { return true; }
  static void Row(const racy::Kernels& kernels, const MomentumStep& s, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    UpdateInPieces<1>(kernels, grads, w, states, n, [&s](float grad, float& weight, std::array<float, 1>& velocity) {
      const float g = grad + s.decay * weight;
      velocity[0] = s.mu * velocity[0] + g;
      weight -= s.lr * (s.nesterov ? g + s.mu * velocity[0] : velocity[0]);
    });
  }
};

Status InferMomentum(InferShapeContext& context) {
  const std::string method = context.op().String("regularization_method");
  if (!method.empty() && method != "l2_decay") {
    return context.Error("regularization_method is \"" + method + "\"; supported are \"l2_decay\" and none");
  }
  return InferOptimizer(context, Momentum::kStates, Momentum::kScalars);
}

}  // namespace

void RegisterMomentum(OpRegistry& registry) {
  AddOptimizer<Momentum, false>(
      registry, "momentum", "Velocity = mu * Velocity + Grad; Param -= LearningRate * Velocity.", [](OpBuilder& op) {
        op.Attr("mu", 0.9F, "share of the velocity that stays")
            .Attr("use_nesterov", false, "steps by Grad + mu * Velocity instead")
            .Fixed("rescale_grad", 1.0F, "factor of Grad")
            .Attr("regularization_method", std::string(), "l2_decay: adds regularization_coeff * Param to Grad")
            .Attr("regularization_coeff", 0.0F, "strength of the penalty");
        op.InferShape(InferMomentum);
      });
}

}  // namespace millrace
