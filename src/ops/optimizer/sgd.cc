#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

struct Sgd {
  static constexpr std::array<StateInfo, 0> kStates{};
  static constexpr std::array<StateInfo, 0> kScalars{};

  explicit Sgd(const OpView&) {}
  racy::SgdStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const { return {lr}; }
  bool DecaysAllRows() const { return false; }
  static void Row(const racy::Kernels& kernels, const racy::SgdStep& step, const float* grad, float* w,
                  const StateValues&, size_t n) {
    kernels.sgd_row(step, grad, w, n);
  }
  static void Rows(const racy::Kernels& kernels, const racy::SgdStep& step, const uint64_t* ids, const float* grads,
                   size_t count, size_t dim, float* w, const StateValues& states) {
    kernels.sgd_matrix_rows(step, ids, grads, count, dim, w, states[0], states[1]);
  }
};

}  // namespace

void RegisterSgd(OpRegistry& registry) {
  RegisterOptimizer<Sgd>(registry, "sgd", "ParamOut = Param - LearningRate * Grad.", [](OpBuilder&) {});
}

}  // namespace millrace
