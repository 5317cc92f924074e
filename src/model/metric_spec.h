#pragma once

#include <cstdint>
#include <string>

#include "model.pb.h"

namespace millrace {

/// A metric with its defaults filled in. It is computed by the worker from (prediction, label), not by an operator.
struct MetricSpec {
  MetricDesc::Kind kind = MetricDesc::AUC;
  std::string prediction;  ///< variable: a probability [B, 1], or [B, classes] whose last column is the click's
  std::string label;       ///< slot
  std::string group;       ///< slot, for GAUC
  int64_t max_rows = 1;    ///< that a GAUC may keep
};

}  // namespace millrace
