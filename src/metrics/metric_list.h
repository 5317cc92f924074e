#pragma once

#include <memory>
#include <string>

#include "core/registry.h"
#include "metrics/metric.h"

namespace millrace {

/// What is known of a metric beside its arithmetic.
struct MetricInfo {
  std::string printed_name;  ///< "auc"
  MetricLabels labels = MetricLabels::kAny;
  MetricBetter better = MetricBetter::kHigher;
  std::unique_ptr<Metric> (*make)() = nullptr;  ///< null: GAUC, which is no list of sums (group_sample.h)
};

/// Metrics by the name of their kind, "AUC" (MetricDesc.Kind).
class MetricRegistry : public Registry<MetricInfo> {
 public:
  MetricRegistry() : Registry("metric of the kind") {}
};

/// The list of metrics that Millrace brings along. kAlreadyExists when one of them is there.
Status RegisterBuiltinMetrics(MetricRegistry& registry);

}  // namespace millrace
