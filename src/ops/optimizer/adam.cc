#include "ops/optimizer/optimizer_kernel.h"
#include "ops/optimizer/power_of_beta.h"

namespace millrace {
namespace {

struct Adam {
  static constexpr auto kStates = kAdamMeans;
  static constexpr auto kScalars = kAdamPowers;
  static constexpr std::array<const char*, 4> kTensors{"Beta1Tensor", "Beta2Tensor", "EpsilonTensor", "SkipUpdate"};
  float beta1, beta2, epsilon;
  bool lazy, keeps_powers, exact;

  explicit Adam(const OpView& op)
      : beta1(op.Float("beta1")),
        beta2(op.Float("beta2")),
        epsilon(op.Float("epsilon")),
        lazy(op.Bool("lazy_mode")),
        keeps_powers(op.Bool("use_global_beta_pow")),
        exact(op.Bool("exact_sparse_powers")) {}

  static bool Updates(const std::array<double, 4>& told) { return !(told[3] > 0); }
  void SetTensors(const std::array<double, 4>& told) {
    float* const places[] = {&beta1, &beta2, &epsilon};
    for (size_t i = 0; i < 3; ++i) {
      if (!std::isnan(told[i])) *places[i] = static_cast<float>(told[i]);
    }
  }
  racy::AdamStep StepFor(float lr, const std::array<Tensor*, 2>& powers, bool is_sparse) const {
    const bool ahead = is_sparse && !exact;
    return racy::MakeAdamStep(lr, beta1, beta2, epsilon, PowerOfBeta::Read(powers[0]) * (ahead ? beta1 : 1),
                              PowerOfBeta::Read(powers[1]) * (ahead ? beta2 : 1));
  }
  void Finish(const std::array<Tensor*, 2>& powers) const {
    if (keeps_powers) return;
    const float next[2] = {PowerOfBeta::Read(powers[0]) * beta1, PowerOfBeta::Read(powers[1]) * beta2};
    for (size_t i = 0; i < 2; ++i) racy::CopyRow(&next[i], powers[i]->mutable_data<float>(), 1);
  }
  bool DecaysAllRows() const { return !lazy; }
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
        const char* ignored = "as Paddle writes it; changes nothing here";
        op.Attr("beta1", 0.9F, "share of Moment1 that stays")
            .Attr("beta2", 0.999F, "share of Moment2 that stays")
            .Attr("epsilon", 1e-8F, "keeps the quotient finite")
            .Attr("lazy_mode", false, "rows without a gradient stay; otherwise their moments decay as well")
            .Attr("min_row_size_to_use_multithread", int64_t{1000}, ignored)
            .Attr("use_global_beta_pow", false, "the powers of the betas are moved on elsewhere")
            .Attr("exact_sparse_powers", false,
                  "sparse gradients are corrected by this step's powers; otherwise by the next one's, as Paddle does");
      });
}

}  // namespace millrace
