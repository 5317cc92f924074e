#include "ops/optimizer/adam_rule.h"

namespace millrace {
namespace {

struct Adam : AdamRule {
  bool exact;

  explicit Adam(const OpView& op) : AdamRule(op), exact(op.Bool("exact_sparse_powers")) {}

  racy::AdamStep StepFor(float lr, const std::array<Tensor*, 2>& powers, bool is_sparse) const {
    const bool ahead = is_sparse && !exact;
    return racy::MakeAdamStep(lr, beta1, beta2, epsilon, PowerOfBeta::Read(powers[0]) * (ahead ? beta1 : 1),
                              PowerOfBeta::Read(powers[1]) * (ahead ? beta2 : 1));
  }
  /// Paddle does not correct the epsilon of rows without a gradient.
  racy::AdamStep IdleStep(racy::AdamStep step) const {
    if (!exact) step.epsilon = epsilon;
    return step;
  }
  static void Row(const racy::Kernels& kernels, const racy::AdamStep& step, const float* grad, float* w,
                  const StateValues& states, size_t n) {
    kernels.adam_row(step, grad, w, states[0], states[1], n);
  }
  static void Rows(const racy::Kernels& kernels, const racy::AdamStep& step, const uint64_t* ids, const float* grads,
                   size_t count, size_t dim, float* w, const StateValues& states) {
    kernels.adam_matrix_rows(step, ids, grads, count, dim, w, states[0], states[1]);
  }
};

}  // namespace

void RegisterAdam(OpRegistry& registry) {
  RegisterOptimizer<Adam>(
      registry, "adam", "Adam, its bias corrected by the powers of the betas, which move on with each step.",
      [](OpBuilder& op) {
        Adam::AddAttrs(op).Attr(
            "exact_sparse_powers", false,
            "sparse gradients are corrected by this step's powers, and rows without a gradient by the same epsilon; "
            "otherwise by the next step's, and these rows by epsilon as it is, as Paddle does");
      });
}

}  // namespace millrace
