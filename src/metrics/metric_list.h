#pragma once

#include <memory>
#include <string>

#include "core/registry.h"
#include "metrics/example_rows.h"
#include "metrics/metric.h"

namespace millrace {

/// How a metric reads a logit given as its `in`, and which predictions are defined.
enum class MetricReads : uint8_t {
  kAsNamed,            ///< the logit; all numbers are defined
  kProbability,        ///< the loss's probability for the logit; all numbers are defined
  kProbabilitiesOnly,  ///< likewise; numbers outside 0 to 1 are undefined
};

/// Properties of a metric. Its printed name is its lower-case name.
struct MetricInfo {
  MetricLabels labels = MetricLabels::kAny;
  MetricBetter better = MetricBetter::kHigher;
  std::unique_ptr<Metric> (*make)() = nullptr;  ///< null: AUC within groups, which is not a list of sums
                                                ///< (group_sample.h)
  bool is_weighted = false;                     ///< reads MetricRows::weights
  OfClasses of_classes = OfClasses::kLast;      ///< how it reads more than two classes
  /// The exact value from examples, if the sums only approximate it; null: sums are exact.
  double (*exact)(std::span<const ExampleRow> sorted) = nullptr;
  /// Maximum error of the value from sums.
  double (*bound)(std::span<const double> sums) = nullptr;
  std::unique_ptr<Metric> (*of_logits)() = nullptr;  ///< the same for logits; null: it reads probabilities
  double clipped_at = 0;                             ///< predictions closer to 0 or 1 are clipped to this distance
  MetricReads reads = MetricReads::kAsNamed;
};

/// Metrics by name, "AUC": MetricDesc.kind, or MetricDesc.class_name for those of plugins.
class MetricRegistry : public Registry<MetricInfo> {
 public:
  MetricRegistry() : Registry("metric of the kind") {}
};

/// Registers the built-in metrics. Fails with kAlreadyExists if a name is taken.
Status RegisterBuiltinMetrics(MetricRegistry& registry);

}  // namespace millrace
