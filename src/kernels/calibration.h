#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace millrace {

/// Maps a probability to a calibrated one. Refers to its points.
struct CalibrationMap {
  /// Without points: a line through the logits.
  float slope = 1;
  float intercept = 0;
  /// Ascending probabilities and their calibrated values. Interpolates linearly between them; outside, uses the
  /// nearest.
  std::span<const float> points = {};
  std::span<const float> values = {};
  float center = 0;  ///< the logit whose result is sigmoid(intercept)
};

/// Bounds for probabilities, so that logits are finite, also in single precision.
inline constexpr float kLeastShare = 1e-9F;
inline constexpr float kMostShare = 0.99999994F;

inline double LogitOf(float share) {
  const auto p = static_cast<double>(std::clamp(share, kLeastShare, kMostShare));
  return std::log(p / (1 - p));
}

/// NaN stays NaN. Costs a binary search over the points.
inline float Calibrated(const CalibrationMap& map, float share) {
  if (std::isnan(share)) return share;
  if (map.points.empty()) {
    const double from_center = LogitOf(share) - static_cast<double>(map.center);
    const double logit = static_cast<double>(map.slope) * from_center + static_cast<double>(map.intercept);
    return static_cast<float>(1 / (1 + std::exp(-logit)));
  }
  const auto above = std::upper_bound(map.points.begin(), map.points.end(), share);
  const auto at = static_cast<size_t>(above - map.points.begin());
  if (at == 0) return map.values.front();
  if (at == map.points.size()) return map.values.back();
  const double part = (static_cast<double>(share) - static_cast<double>(map.points[at - 1])) /
                      (static_cast<double>(map.points[at]) - static_cast<double>(map.points[at - 1]));
  const auto from = static_cast<double>(map.values[at - 1]);
  return static_cast<float>(from + part * (static_cast<double>(map.values[at]) - from));
}

}  // namespace millrace
