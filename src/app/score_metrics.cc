#include "app/score_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "batch/class_weight.h"
#include "core/lower_case.h"
#include "core/numbers.h"

namespace millrace {
namespace {

bool IsFinite(float value) { return std::isfinite(value); }

bool IsShare(float value) { return value >= 0 && value <= 1; }

/// A slot of one value a row; -1: there is none.
SlotId OneValueSlot(const SlotSchema& schema, const std::string& name) {
  const SlotId found = schema.Find(name);
  if (found < 0) return -1;
  const SlotSpec& slot = schema.used()[static_cast<size_t>(found)];
  return slot.is_dense && slot.width == 1 ? found : -1;
}

float ValueAt(const SlotBatch& batch, SlotId slot, size_t row) {
  const bool is_float = batch.schema().used()[static_cast<size_t>(slot)].type == SlotType::kFloat;
  return is_float ? batch.floats(slot)[row] : static_cast<float>(batch.ids(slot)[row]);
}

}  // namespace

ScoreMetrics::ScoreMetrics(const SlotSchema& schema, const ModelTask& task, ScoreColumns columns,
                           const MetricRegistry& registry)
    : task_(task.name()),
      columns_(columns),
      label_(OneValueSlot(schema, task.label())),
      class_weight_(task.class_weight().begin(), task.class_weight().end()) {
  if (!task.sample_weight().empty()) weight_ = OneValueSlot(schema, task.sample_weight());
  if (!task.mask().empty()) mask_ = OneValueSlot(schema, task.mask());
  const bool lacks_weights = (!task.sample_weight().empty() && weight_ < 0) || (!task.mask().empty() && mask_ < 0);
  if (lacks_weights) label_ = -1;
  if (label_ < 0) return;
  const std::vector<std::pair<const char*, bool>> of_one = {
      {"AUC", true}, {"LOGLOSS", true}, {"CALIBRATION", true}, {"MAE", false}, {"RMSE", false}};
  const std::vector<std::pair<const char*, bool>> of_classes = {{"ACCURACY", true}, {"LOGLOSS", true}};
  const auto& kinds = is_of_classes() ? of_classes : of_one;
  measures_.reserve(kinds.size());
  for (const auto& [kind, is_of_shares] : kinds) {
    const MetricInfo* const info = registry.Find(kind);
    if (info == nullptr) continue;
    const bool by_logit = info->of_logits != nullptr && columns_.have_logits && !is_of_classes();
    std::unique_ptr<Metric> metric = by_logit ? info->of_logits() : info->make();
    const int size = metric->size();
    measures_.push_back(
        {LowerCase(kind), std::move(metric), MetricSums(size), is_of_shares, info, by_logit, ExampleRows()});
  }
}

std::optional<float> ScoreMetrics::WeightOf(const SlotBatch& batch, size_t row, float label) const {
  float weight = weight_ >= 0 ? ValueAt(batch, weight_, row) : 1;
  // A label without a weight counts as it is: what it does to the metrics is to be seen.
  if (!class_weight_.empty()) weight *= ClassWeight(class_weight_, label).value_or(1);
  return weight > 0 && IsFinite(weight) ? std::optional<float>(weight) : std::nullopt;
}

bool ScoreMetrics::IsLabel(float label) const {
  if (!is_of_classes()) return IsShare(label);
  return label >= 0 && label < static_cast<float>(columns_.count) && label == std::floor(label);
}

/// Adds what was read to a measure.
void ScoreMetrics::AddTo(Measure* measure) {
  if (!is_of_classes()) return AddRows({measure->by_logit ? logits_ : scores_, labels_, weights_}, measure);
  of_labels_.clear();
  for (size_t row = 0; row < labels_.size(); ++row) {
    const std::span<const float> classes = std::span(scores_).subspan(row * columns_.count, columns_.count);
    of_labels_.push_back(ValueOfRow(measure->info->of_classes, classes, labels_[row]));
  }
  ones_.assign(labels_.size(), 1.0F);
  AddRows({of_labels_, ones_, weights_}, measure);
}

void ScoreMetrics::AddRows(const MetricRows& rows, Measure* measure) {
  measure->metric->Add(rows, measure->sums);
  if (measure->info->exact != nullptr) measure->examples.Add(rows);
  measure->clipped += ClippedRows(*measure->info, rows.predictions, measure->by_logit);
}

std::string ScoreMetrics::ValueText(Measure* measure) {
  if (!are_finite_) return "nan";
  std::vector<double> sums;
  for (size_t i = 0; i < measure->sums.size(); ++i) sums.push_back(measure->sums.Get(i));
  if (measure->info->exact == nullptr) return MetricText("", measure->metric->Compute(sums), {});
  if (measure->examples.is_whole()) return MetricText("", measure->info->exact(measure->examples.Sorted()), {});
  return MetricText("", measure->metric->Compute(sums), {{"", measure->info->bound(sums)}});
}

void ScoreMetrics::Add(std::span<const float> scores, std::span<const float> logits, size_t columns,
                       const SlotBatch& batch) {
  if (label_ < 0) return;
  scores_.clear();
  logits_.clear();
  labels_.clear();
  weights_.clear();
  for (size_t row = 0; row < scores.size() / columns; ++row) {
    if (mask_ >= 0 && ValueAt(batch, mask_, row) != 1) continue;
    const float label = ValueAt(batch, label_, row);
    if (weight_ >= 0 || !class_weight_.empty()) {
      const std::optional<float> weight = WeightOf(batch, row, label);
      if (!weight.has_value()) continue;
      weights_.push_back(*weight);
    }
    const std::span<const float> own = scores.subspan(row * columns + columns_.first, columns_.count);
    scores_.insert(scores_.end(), own.begin(), own.end());
    const std::span<const float> order = logits.subspan(row * columns + columns_.first, columns_.count);
    logits_.insert(logits_.end(), order.begin(), order.end());
    labels_.push_back(label);
  }
  rows_ += static_cast<int64_t>(labels_.size());
  are_finite_ = are_finite_ && std::all_of(scores_.begin(), scores_.end(), IsFinite) &&
                std::all_of(labels_.begin(), labels_.end(), IsFinite);
  if (!are_finite_) return;
  are_likelihoods_ = are_likelihoods_ && std::all_of(scores_.begin(), scores_.end(), IsShare);
  const auto other = std::find_if_not(labels_.begin(), labels_.end(), [this](float label) { return IsLabel(label); });
  if (other != labels_.end() && !other_label_.has_value()) other_label_ = *other;
  for (Measure& measure : measures_) {
    if (!measure.is_of_shares || AreShares()) AddTo(&measure);
  }
}

std::string ScoreMetrics::Text() {
  if (rows_ == 0 || (is_of_classes() && !are_likelihoods_)) return "";
  std::string text;
  std::string remarks;
  for (Measure& measure : measures_) {
    if (measure.is_of_shares != AreShares()) continue;
    const std::string name = (task_.empty() ? "" : task_ + "/") + measure.name;
    text += name + " " + ValueText(&measure) + "  ";
    if (are_finite_ && measure.clipped > 0) remarks += "\n" + ClippedText(name, *measure.info, measure.clipped);
  }
  text += "of " + std::to_string(rows_) + (rows_ == 1 ? " example" : " examples");
  if (!are_finite_ || AreShares() || !are_likelihoods_) return text + remarks;
  const std::string label = ShortestNumber(static_cast<double>(*other_label_));
  if (is_of_classes()) {
    return (task_.empty() ? "" : task_ + ": ") + text + ": a label is " + label +
           ", so nothing is measured; they are classes from 0 to " + std::to_string(columns_.count - 1);
  }
  return text + ": a label is " + label + ", so there is no auc and no logloss, which are of labels from 0 to 1";
}

}  // namespace millrace
