#pragma once

#include <algorithm>
#include <cmath>

namespace millrace {

/// The bucket of a logit among `buckets` even steps between -16 and 16; NaN is in bucket 0.
inline int BucketOfLogit(double logit, int buckets) {
  const double at = (logit + 16.0) * (buckets / 32.0);
  if (!(at > 0)) return 0;
  return std::min(static_cast<int>(at), buckets - 1);
}

/// The bucket of a probability among `buckets` even steps of its logit between -16 and 16; NaN is in bucket 0.
inline int LogitBucket(float probability, int buckets) {
  const double p = std::clamp(static_cast<double>(probability), 1e-9, 1 - 1e-9);
  return BucketOfLogit(std::log(p / (1 - p)), buckets);
}

}  // namespace millrace
