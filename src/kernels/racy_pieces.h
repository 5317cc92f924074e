#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/racy.h"

/// Rules without a function in kernels/racy.h, built on its copy_row. They also do not allocate, lock or fail.
namespace millrace::racy {

/// Updates one vector with a custom rule: update(grad, w, states) gets one value of each, with kStates states, from
/// copies of a few hundred values, which are then copied back.
template <size_t kStates, size_t kHeld, class Update>
void UpdateInPieces(const Kernels& kernels, const float* grad, float* w, const std::array<float*, kHeld>& states,
                    size_t n, const Update& update) {
  static_assert(kStates <= kHeld);
  constexpr size_t kPiece = 256;
  float weights[kPiece];
  std::array<std::array<float, kPiece>, kStates> kept;
  for (size_t at = 0; at < n; at += kPiece) {
    const size_t count = std::min(kPiece, n - at);
    kernels.copy_row(w + at, weights, count);
    for (size_t s = 0; s < kStates; ++s) kernels.copy_row(states[s] + at, kept[s].data(), count);
    for (size_t i = 0; i < count; ++i) {
      std::array<float, kStates> one;
      for (size_t s = 0; s < kStates; ++s) one[s] = kept[s][i];
      update(grad[at + i], weights[i], one);
      for (size_t s = 0; s < kStates; ++s) kept[s][i] = one[s];
    }
    for (size_t s = 0; s < kStates; ++s) kernels.copy_row(kept[s].data(), states[s] + at, count);
    kernels.copy_row(weights, w + at, count);
  }
}

/// ftrl_row with learning rates that use another power of the sum of squares than -1/2; states are n and z.
template <size_t kHeld>
void FtrlRowOfPower(const Kernels& kernels, const FtrlStep& step, float power, const float* grad, float* w,
                    const std::array<float*, kHeld>& states, size_t n) {
  UpdateInPieces<2>(kernels, grad, w, states, n, [&](float g, float& weight, std::array<float, 2>& state) {
    const float sum = state[0] + g * g;
    const float rate = std::pow(sum, -power);
    state[1] += g - (rate - std::pow(state[0], -power)) / step.alpha * weight;
    state[0] = sum;
    const float pull = state[1] > 0 ? step.l1 : -step.l1;
    weight = std::abs(state[1]) <= step.l1 ? 0 : (pull - state[1]) / (rate / step.alpha + step.shrink);
  });
}

}  // namespace millrace::racy
