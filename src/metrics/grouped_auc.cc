#include <limits>

#include "core/hash.h"
#include "metrics/logit_buckets.h"
#include "metrics/metric.h"

namespace millrace {
namespace {

constexpr int kCells = 1 << 14;
constexpr int kBuckets = 64;

// sums[(cell * 2 + label) * kBuckets + bucket] = rows.
class GroupedAuc final : public Metric {
 public:
  std::string_view name() const override { return "gauc"; }
  int size() const override { return kCells * 2 * kBuckets; }

  void Add(const MetricRows& rows, MetricSums& sums) const override {
    for (size_t i = 0; i < rows.predictions.size(); ++i) {
      const uint64_t cell = Mix64(rows.groups[i]) % kCells;
      const uint64_t label = rows.labels[i] > 0.5f ? 1 : 0;
      const auto bucket = static_cast<uint64_t>(LogitBucket(rows.predictions[i], kBuckets));
      sums.Add((cell * 2 + label) * kBuckets + bucket, 1);
    }
  }

  double Compute(std::span<const double> sums) const override {
    double weighted = 0;
    double weight = 0;
    for (size_t cell = 0; cell < kCells; ++cell) {
      double negatives = 0;
      double positives = 0;
      double ordered_pairs = 0;
      for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
        const double n = sums[cell * 2 * kBuckets + bucket];
        const double p = sums[(cell * 2 + 1) * kBuckets + bucket];
        ordered_pairs += p * (negatives + n / 2);
        negatives += n;
        positives += p;
      }
      if (negatives <= 0 || positives <= 0) continue;
      weighted += ordered_pairs / (negatives * positives) * (negatives + positives);
      weight += negatives + positives;
    }
    return weight > 0 ? weighted / weight : std::numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace

std::unique_ptr<Metric> MakeGroupedAuc() { return std::make_unique<GroupedAuc>(); }

}  // namespace millrace
