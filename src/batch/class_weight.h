#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace millrace {

/// The weight of an example with `label`, given `weights[i]` for label i (not empty); interpolated between two labels.
/// Nullopt for a label without a weight and for NaN.
inline std::optional<float> ClassWeight(std::span<const float> weights, float label) {
  const auto last = static_cast<float>(weights.size() - 1);
  if (!(label >= 0 && label <= last)) return std::nullopt;
  const auto below = static_cast<size_t>(label);
  const float share = label - static_cast<float>(below);
  return share == 0 ? weights[below] : weights[below] * (1 - share) + weights[below + 1] * share;
}

}  // namespace millrace
