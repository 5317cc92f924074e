#include <limits>

#include "metrics/logit_buckets.h"
#include "metrics/metric.h"

namespace millrace {
namespace {

constexpr int kBuckets = 1 << 16;

// sums = negatives by bucket, then positives by bucket.
class Auc final : public Metric {
 public:
  int size() const override { return 2 * kBuckets; }

  void Add(const MetricRows& rows, MetricSums& sums) const override {
    for (size_t i = 0; i < rows.predictions.size(); ++i) {
      const auto bucket = static_cast<size_t>(LogitBucket(rows.predictions[i], kBuckets));
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
};

}  // namespace

std::unique_ptr<Metric> MakeAuc() { return std::make_unique<Auc>(); }

}  // namespace millrace
