#pragma once

#include <memory>
#include <string>

#include "metrics/metric.h"
#include "model.pb.h"

namespace millrace {

/// The metric of a kind; null for GAUC, which is no list of sums (group_sample.h).
std::unique_ptr<Metric> MakeMetric(MetricDesc::Kind kind);

}  // namespace millrace
