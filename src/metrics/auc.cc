#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "metrics/logit_buckets.h"
#include "metrics/metric.h"

namespace millrace {
namespace {

// Buckets of probabilities or logits. Scores outside of 0 to 1, or -16 to 16, have separate buckets, 64 per doubling:
// from -infinity to -2^-32 before these, and from 1 to infinity after them.
constexpr uint32_t kOfShares = 1 << 16;
constexpr uint32_t kShift = 23 - 6;
constexpr uint32_t kInfinity = std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity()) >> kShift;
constexpr uint32_t kLeastBelow = std::bit_cast<uint32_t>(0x1p-32F) >> kShift;
constexpr uint32_t kLeastAbove = std::bit_cast<uint32_t>(1.0F) >> kShift;
constexpr uint32_t kBelow = kInfinity - kLeastBelow + 1;
constexpr uint32_t kAbove = kInfinity - kLeastAbove + 1;
constexpr uint32_t kBuckets = kBelow + kOfShares + kAbove;

// Monotonic in the score.
uint32_t BucketOf(float score, bool is_logit) {
  if (is_logit && std::abs(score) <= 16) return kBelow + static_cast<uint32_t>(BucketOfLogit(score, kOfShares));
  if (!is_logit && score >= 0 && score <= 1) return kBelow + static_cast<uint32_t>(LogitBucket(score, kOfShares));
  const uint32_t size = std::bit_cast<uint32_t>(std::abs(score)) >> kShift;
  if (score > 1) return kBelow + kOfShares + size - kLeastAbove;
  return kInfinity - std::clamp(size, kLeastBelow, kInfinity);  // NaN counts as -infinity
}

// sums = negatives by bucket, then positives by bucket.
class Auc final : public Metric {
 public:
  explicit Auc(bool of_logits) : of_logits_(of_logits) {}
  int size() const override { return 2 * kBuckets; }

  void Add(const MetricRows& rows, MetricSums& sums) const override {
    for (size_t i = 0; i < rows.predictions.size(); ++i) {
      const uint32_t bucket = BucketOf(rows.predictions[i], of_logits_);
      sums.Add(bucket + (rows.labels[i] > 0.5f ? kBuckets : 0), static_cast<double>(rows.WeightOf(i)));
    }
  }

  double Compute(std::span<const double> sums) const override {
    double negatives = 0;
    double positives = 0;
    double ordered_pairs = 0;
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
      const double n = sums[bucket];
      const double p = sums[bucket + kBuckets];
      ordered_pairs += p * (negatives + n / 2);
      negatives += n;
      positives += p;
    }
    if (negatives <= 0 || positives <= 0) return std::numeric_limits<double>::quiet_NaN();
    return ordered_pairs / (negatives * positives);
  }

 private:
  const bool of_logits_;
};

}  // namespace

std::unique_ptr<Metric> MakeAuc() { return std::make_unique<Auc>(false); }
std::unique_ptr<Metric> MakeAucOfLogits() { return std::make_unique<Auc>(true); }

double AucBound(std::span<const double> sums) {
  double negatives = 0;
  double positives = 0;
  double tied_pairs = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    negatives += sums[bucket];
    positives += sums[bucket + kBuckets];
    tied_pairs += sums[bucket] * sums[bucket + kBuckets];
  }
  return tied_pairs > 0 ? tied_pairs / (2 * negatives * positives) : 0;
}

}  // namespace millrace
