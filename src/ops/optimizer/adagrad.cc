#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

struct Adagrad {
  static constexpr std::array<StateInfo, 1> kStates{
      {{"Moment", "MomentOut", "sum of squared gradients", "moment", "initial_accumulator", true}}};
  static constexpr std::array<StateInfo, 0> kScalars{};
  float epsilon;

  explicit Adagrad(const OpView& op) : epsilon(op.Float("epsilon")) {}
  racy::AdagradStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const { return {lr, epsilon}; }
  bool DecaysAllRows() const { return false; }
  static void Row(const racy::Kernels& kernels, const racy::AdagradStep& step, const float* grad, float* w,
                  const StateValues& states, size_t n) {
    kernels.adagrad_row(step, grad, w, states[0], n);
  }
  static void Rows(const racy::Kernels& kernels, const racy::AdagradStep& step, const uint64_t* ids, const float* grads,
                   size_t count, size_t dim, float* w, const StateValues& states) {
    kernels.adagrad_matrix_rows(step, ids, grads, count, dim, w, states[0], states[1]);
  }
};

}  // namespace

void RegisterAdagrad(OpRegistry& registry) {
  RegisterOptimizer<Adagrad>(registry, "adagrad",
                             "Moment += Grad^2; Param -= LearningRate * Grad / (sqrt(Moment) + epsilon).",
                             [](OpBuilder& op) { op.Attr("epsilon", 1e-6F, "keeps the quotient finite"); });
}

}  // namespace millrace
