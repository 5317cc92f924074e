#include "app/score_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/lower_case.h"

namespace millrace {
namespace {

bool IsFinite(float value) { return std::isfinite(value); }

bool IsShare(float value) { return value >= 0 && value <= 1; }

}  // namespace

ScoreMetrics::ScoreMetrics(const SlotSchema& schema, const std::string& label, const MetricRegistry& registry)
    : label_(schema.Find(label)) {
  if (label_ < 0) return;
  const SlotSpec& slot = schema.used()[static_cast<size_t>(label_)];
  if (!slot.is_dense || slot.width != 1) {
    label_ = -1;
    return;
  }
  is_float_ = slot.type == SlotType::kFloat;
  const std::vector<std::pair<const char*, bool>> kinds = {
      {"AUC", true}, {"LOGLOSS", true}, {"CALIBRATION", true}, {"MAE", false}, {"RMSE", false}};
  measures_.reserve(kinds.size());
  for (const auto& [kind, is_of_shares] : kinds) {
    const MetricInfo* const info = registry.Find(kind);
    if (info == nullptr) continue;
    std::unique_ptr<Metric> metric = info->make();
    const int size = metric->size();
    measures_.push_back({LowerCase(kind), std::move(metric), MetricSums(size), is_of_shares});
  }
}

void ScoreMetrics::Add(std::span<const float> scores, const SlotBatch& batch) {
  if (label_ < 0) return;
  labels_.clear();
  if (is_float_) {
    const auto values = batch.floats(label_).first(scores.size());
    labels_.assign(values.begin(), values.end());
  } else {
    for (const uint64_t id : batch.ids(label_).first(scores.size())) labels_.push_back(static_cast<float>(id));
  }
  rows_ += static_cast<int64_t>(scores.size());
  are_finite_ = are_finite_ && std::all_of(scores.begin(), scores.end(), IsFinite) &&
                std::all_of(labels_.begin(), labels_.end(), IsFinite);
  if (!are_finite_) return;
  are_shares_ = are_shares_ && std::all_of(scores.begin(), scores.end(), IsShare) &&
                std::all_of(labels_.begin(), labels_.end(), IsShare);
  for (Measure& measure : measures_) {
    if (!measure.is_of_shares || are_shares_) measure.metric->Add({scores, labels_}, measure.sums);
  }
}

std::string ScoreMetrics::Text() const {
  if (rows_ == 0) return "";
  std::string text;
  for (const Measure& measure : measures_) {
    if (measure.is_of_shares != are_shares_) continue;
    std::vector<double> sums;
    for (size_t i = 0; i < measure.sums.size(); ++i) sums.push_back(measure.sums.Get(i));
    char value[48];
    const double measured = are_finite_ ? measure.metric->Compute(sums) : std::numeric_limits<double>::quiet_NaN();
    std::snprintf(value, sizeof(value), " %.6f  ", measured);
    text += measure.name + value;
  }
  return text + "of " + std::to_string(rows_) + (rows_ == 1 ? " example" : " examples");
}

}  // namespace millrace
