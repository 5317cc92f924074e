#pragma once

#include <cstdint>
#include <string>

#include "model.pb.h"

namespace millrace {

/// A metric with its defaults filled in. It is computed by the worker from (prediction, label), not by an operator.
struct MetricSpec {
  std::string kind;        ///< by which it is registered: "AUC"
  std::string prediction;  ///< variable: a probability [B, 1], or [B, classes] whose last column is the click's
  std::string label;       ///< slot
  std::string group;       ///< slot, for GAUC
  int64_t max_rows = 1;    ///< that a GAUC may keep
  std::string name = {};   ///< it is printed as; empty: its kind in lower case
  /// Variable, [B, 1]: how much a row counts; 0: not at all, whatever its label and prediction are. Empty: every row
  /// once.
  std::string weights = {};
  int metric = 0;                ///< its number in the model
  std::string probability = {};  ///< variable: what the loss makes of `prediction` where that is a logit; else empty
  std::string logit = {};  ///< variable, [B, 1], that the prediction is the sigmoid of; empty: order by the prediction
};

/// The name by which a metric is registered: its class, or else its kind.
inline std::string KindOf(const MetricDesc& metric) {
  return metric.has_class_name() ? metric.class_name() : MetricDesc::Kind_Name(metric.kind());
}

}  // namespace millrace
