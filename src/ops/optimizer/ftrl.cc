#include "core/numbers.h"
#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

struct Ftrl {
  static constexpr std::array<StateInfo, 2> kStates{
      {{"SquaredAccumulator", "SquaredAccumOut", "sum of squared gradients", "squared", "", true},
       {"LinearAccumulator", "LinearAccumOut", "FTRL's z", "linear", "", true}}};
  static constexpr std::array<StateInfo, 0> kScalars{};
  static constexpr float kRoot = -0.5F;  ///< the power that kernels/racy.h has
  struct Step : racy::FtrlStep {
    float power = kRoot;
  };
  float l1, l2, beta, power;

  explicit Ftrl(const OpView& op)
      : l1(op.Float("l1")), l2(op.Float("l2")), beta(op.Float("beta")), power(op.Float("lr_power")) {}
  Step StepFor(float lr, const std::array<Tensor*, 2>&, bool) const {
    return {{lr, l1, beta < 0 ? 2 * l2 : beta / lr + l2}, power};
  }
  bool DecaysAllRows() const { return false; }
  static void Row(const racy::Kernels& kernels, const Step& step, const float* grad, float* w,
                  const StateValues& states, size_t n) {
    if (step.power == kRoot) return kernels.ftrl_row(step, grad, w, states[0], states[1], n);
    racy::FtrlRowOfPower(kernels, step, step.power, grad, w, states, n);
  }
  static void Rows(const racy::Kernels& kernels, const Step& step, const uint64_t* ids, const float* grads,
                   size_t count, size_t dim, float* w, const StateValues& states) {
    if (step.power != kRoot) return UpdateRowsByRow<Ftrl>(kernels, step, ids, grads, count, dim, w, states);
    kernels.ftrl_matrix_rows(step, ids, grads, count, dim, w, states[0], states[1]);
  }
};

Status CheckPower(InferShapeContext& context) {
  const float power = context.op().Float("lr_power");
  if (!(power <= 0)) return context.Error("lr_power is " + ShortestNumber(power) + "; it must not be above 0");
  return InferOptimizer(context, Ftrl::kStates, Ftrl::kScalars);
}

}  // namespace

void RegisterFtrl(OpRegistry& registry) {
  RegisterOptimizer<Ftrl>(
      registry, "ftrl", "FTRL-proximal: per-coordinate rates, weights that L1 holds at exactly 0.", [](OpBuilder& op) {
        op.Attr("l1", 0.0F, "L1 strength")
            .Attr("l2", 0.0F, "L2 strength")
            .Attr("lr_power", -0.5F, "rates fall with this power of the sum of squares; -0.5: its root")
            .Attr("beta", -1.0F,
                  "the denominator is (beta + sqrt(n)) / rate + l2 (McMahan 2013); negative: sqrt(n) / rate + 2 l2 "
                  "(Paddle)");
        op.InferShape(CheckPower);
      });
}

}  // namespace millrace
