#pragma once

#include <memory>
#include <string>

#include "core/registry.h"
#include "metrics/example_rows.h"
#include "metrics/metric.h"

namespace millrace {

/// What a metric reads where a job names a logit as its `in`, and which predictions have a meaning.
enum class MetricReads : uint8_t {
  kAsNamed,            ///< the logit; every number has a meaning
  kProbability,        ///< the probability that the loss makes of the logit; every number has a meaning
  kProbabilitiesOnly,  ///< likewise, and numbers below 0 or above 1 have none
};

/// What is known of a metric beside its arithmetic. It is printed by the lower case of its name.
struct MetricInfo {
  MetricLabels labels = MetricLabels::kAny;
  MetricBetter better = MetricBetter::kHigher;
  std::unique_ptr<Metric> (*make)() = nullptr;  ///< null: AUC within groups, which is no list of sums (group_sample.h)
  bool is_weighted = false;                     ///< it reads MetricRows::weights
  OfClasses of_classes = OfClasses::kLast;      ///< what it reads of more than two
  /// The value of the examples themselves, where that of the sums is only near it; null: sums are exact.
  double (*exact)(std::span<const ExampleRow> sorted) = nullptr;
  /// How far the value of the sums may be from that.
  double (*bound)(std::span<const double> sums) = nullptr;
  std::unique_ptr<Metric> (*of_logits)() = nullptr;  ///< the same of logits; null: it reads probabilities
  double clipped_at = 0;                             ///< predictions nearer to 0 or 1 than this count as this near
  MetricReads reads = MetricReads::kAsNamed;
};

/// Metrics by name, "AUC": MetricDesc.kind, or for others than those of Millrace MetricDesc.class_name.
class MetricRegistry : public Registry<MetricInfo> {
 public:
  MetricRegistry() : Registry("metric of the kind") {}
};

/// The list of metrics that Millrace brings along. kAlreadyExists when one of them is there.
Status RegisterBuiltinMetrics(MetricRegistry& registry);

}  // namespace millrace
