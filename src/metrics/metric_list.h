#pragma once

#include <memory>
#include <string>

#include "core/registry.h"
#include "metrics/metric.h"

namespace millrace {

/// What is known of a metric beside its arithmetic. It is printed by the lower case of its name.
struct MetricInfo {
  MetricLabels labels = MetricLabels::kAny;
  MetricBetter better = MetricBetter::kHigher;
  std::unique_ptr<Metric> (*make)() = nullptr;  ///< null: AUC within groups, which is no list of sums (group_sample.h)
  bool is_weighted = false;                     ///< it reads MetricRows::weights
  OfClasses of_classes = OfClasses::kLast;      ///< what it reads of more than two
};

/// Metrics by name, "AUC": MetricDesc.kind, or for others than those of Millrace MetricDesc.class_name.
class MetricRegistry : public Registry<MetricInfo> {
 public:
  MetricRegistry() : Registry("metric of the kind") {}
};

/// The list of metrics that Millrace brings along. kAlreadyExists when one of them is there.
Status RegisterBuiltinMetrics(MetricRegistry& registry);

}  // namespace millrace
