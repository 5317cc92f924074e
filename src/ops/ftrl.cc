#include "ops/optimizer_kernel.h"

namespace millrace {
namespace {

struct Ftrl {
  static constexpr std::array<StateName, 2> kStates{
      {{"SquaredAccumulator", "SquaredAccumOut", "sum of squared gradients"},
       {"LinearAccumulator", "LinearAccumOut", "FTRL's z"}}};
  static constexpr std::array<StateName, 0> kScalars{};
  float l1, l2, beta;

  explicit Ftrl(const OpView& op) : l1(op.Float("l1")), l2(op.Float("l2")), beta(op.Float("beta")) {}
  racy::FtrlStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const {
    return {lr, l1, beta < 0 ? 2 * l2 : beta / lr + l2};
  }
  void Finish(const std::array<Tensor*, 2>&) const {}
  bool DecaysAllRows() const { return false; }
  static void Row(const racy::Kernels& kernels, const racy::FtrlStep& step, const float* grad, float* w,
                  const StateValues& states, size_t n) {
    kernels.ftrl_row(step, grad, w, states[0], states[1], n);
  }
  static void Rows(const racy::Kernels& kernels, const racy::FtrlStep& step, const uint64_t* ids, const float* grads,
                   size_t count, size_t dim, float* w, const StateValues& states) {
    kernels.ftrl_matrix_rows(step, ids, grads, count, dim, w, states[0], states[1]);
  }
};

Status CheckPower(InferShapeContext& context) {
  if (context.op().Float("lr_power") != -0.5F) return context.Error("only lr_power -0.5 is supported");
  return InferOptimizer(context, Ftrl::kStates, Ftrl::kScalars);
}

}  // namespace

void RegisterFtrl(OpRegistry& registry) {
  RegisterOptimizer<Ftrl>(
      registry, "ftrl", "FTRL-proximal: per-coordinate rates, weights that L1 holds at exactly 0.", [](OpBuilder& op) {
        op.Attr("l1", 0.0F, "L1 strength")
            .Attr("l2", 0.0F, "L2 strength")
            .Attr("lr_power", -0.5F, "-0.5: rates fall with the root of the sum of squares")
            .Attr("beta", -1.0F,
                  "the denominator is (beta + sqrt(n)) / rate + l2 (McMahan 2013); negative: sqrt(n) / rate + 2 l2 "
                  "(Paddle)");
        op.InferShape(CheckPower);
      });
}

}  // namespace millrace
