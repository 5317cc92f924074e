#include "ops/optimizer_kernel.h"

namespace millrace {
namespace {

struct Step {
  float lr, mu;
  bool nesterov;
};

struct Momentum {
  static constexpr std::array<StateName, 1> kStates{{{"Velocity", "VelocityOut", "decaying sum of gradients"}}};
  static constexpr std::array<StateName, 0> kScalars{};
  float mu;
  bool nesterov;

  explicit Momentum(const OpView& op) : mu(op.Float("mu")), nesterov(op.Bool("use_nesterov")) {}
  Step StepFor(float lr, const std::array<Tensor*, 2>&, bool) const { return {lr, mu, nesterov}; }
  void Finish(const std::array<Tensor*, 2>&) const {}
  bool DecaysAllRows() const { return true; }
  /// In pieces: the velocity is copied out, moved on and copied back, so that shared memory sees row functions alone.
  static void Row(const racy::Kernels& kernels, const Step& step, const float* grad, float* w, float* velocity, float*,
                  size_t n) {
    constexpr size_t kPiece = 256;
    float piece[kPiece];
    for (size_t at = 0; at < n; at += kPiece) {
      const size_t count = std::min(kPiece, n - at);
      kernels.copy_row(velocity + at, piece, count);
      for (size_t i = 0; i < count; ++i) piece[i] = step.mu * piece[i] + grad[at + i];
      kernels.copy_row(piece, velocity + at, count);
      if (step.nesterov) {
        for (size_t i = 0; i < count; ++i) piece[i] = grad[at + i] + step.mu * piece[i];
      }
      kernels.axpy_row(-step.lr, piece, w + at, count);
    }
  }
  static void Rows(const racy::Kernels& kernels, const Step& step, const uint64_t* ids, const float* grads,
                   size_t count, size_t dim, float* w, float* velocity, float* second) {
    for (size_t i = 0; i < count; ++i) {
      Row(kernels, step, grads + i * dim, w + ids[i] * dim, velocity + ids[i] * dim, second, dim);
    }
  }
};

Status CheckRegularization(InferShapeContext& context) {
  const std::string method = context.op().String("regularization_method");
  if (!method.empty()) return context.Error("regularization_method \"" + method + "\" is not supported");
  return InferOptimizer(context, Momentum::kStates, Momentum::kScalars);
}

}  // namespace

void RegisterMomentum(OpRegistry& registry) {
  AddOptimizer<Momentum, false>(
      registry, "momentum", "Velocity = mu * Velocity + Grad; Param -= LearningRate * Velocity.", [](OpBuilder& op) {
        op.Attr("mu", 0.9F, "share of the velocity that stays")
            .Attr("use_nesterov", false, "steps by Grad + mu * Velocity instead")
            .Attr("regularization_method", std::string(), "must be empty: penalties are operators of their own");
        op.InferShape(CheckRegularization);
      });
}

}  // namespace millrace
