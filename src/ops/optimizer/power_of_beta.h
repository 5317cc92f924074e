#pragma once

#include <array>

#include "kernels/racy.h"
#include "program/op_registry.h"
#include "runtime/tensor.h"

namespace millrace {

/// The states of Adam and of the rules that are made of it.
inline constexpr std::array<StateInfo, 2> kAdamMeans{
    {{"Moment1", "Moment1Out", "mean of gradients", "moment1"},
     {"Moment2", "Moment2Out", "mean of squared gradients", "moment2"}}};
inline constexpr std::array<StateInfo, 2> kAdamPowers{
    {{"Beta1Pow", "Beta1PowOut", "[1], beta1 to the step's power", "beta1_pow_acc", "beta1"},
     {"Beta2Pow", "Beta2PowOut", "[1], beta2 to the step's power", "beta2_pow_acc", "beta2"}}};

/// A power of a beta beside a parameter, [1], which workers share: read and moved on through kernels/racy.h.
class PowerOfBeta {
 public:
  /// Moves on only where `out` is bound: programs of Paddle 1 have a `scale` for it.
  PowerOfBeta(const OpView& op, const char* attribute, const char* out)
      : beta_(op.Float(attribute)), moves_(!OutputArguments(op.desc(), out).empty()) {}

  float beta() const { return beta_; }
  static float Read(const Tensor* power) {
    float value = 0;
    racy::CopyRow(power->data<float>(), &value, 1);
    return value;
  }
  void MoveOn(Tensor* power) const {
    if (!moves_) return;
    const float next = Read(power) * beta_;
    racy::CopyRow(&next, power->mutable_data<float>(), 1);
  }

 private:
  float beta_;
  bool moves_;
};

}  // namespace millrace
