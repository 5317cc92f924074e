#include "metrics/metric_set.h"

#include <algorithm>

#include "metrics/metric_list.h"

namespace millrace {

Result<std::unique_ptr<const MetricSet>> MetricSet::Create(const std::vector<MetricSpec>& specs,
                                                           const SlotSchema& schema) {
  auto set = std::make_unique<MetricSet>();
  for (const MetricSpec& spec : specs) {
    Entry entry;
    entry.metric = MakeMetric(spec.kind);
    entry.prediction = spec.prediction;
    entry.label = schema.Find(spec.label);
    entry.group = spec.group.empty() ? -1 : schema.Find(spec.group);
    entry.first_sum = set->sums_;
    if (entry.label < 0) return InvalidConfig("metric: label: no used slot \"" + spec.label + "\"");
    if (spec.kind == MetricDesc::GAUC && entry.group < 0) {
      return InvalidConfig("metric GAUC: group: no used slot \"" + spec.group + "\"");
    }
    set->sums_ += entry.metric->size();
    std::string name(entry.metric->name());
    const auto same = std::count_if(set->entries_.begin(), set->entries_.end(),
                                    [&](const Entry& e) { return e.metric->name() == name; });
    if (same > 0) name += "_" + std::to_string(same + 1);
    set->names_.push_back(std::move(name));
    set->entries_.push_back(std::move(entry));
  }
  return std::unique_ptr<const MetricSet>(std::move(set));
}

std::vector<std::string> MetricSet::Predictions() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (std::find(names.begin(), names.end(), entry.prediction) == names.end()) names.push_back(entry.prediction);
  }
  return names;
}

MetricValues MetricSet::Compute(std::span<const double> totals) const {
  MetricValues values;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const auto first = static_cast<size_t>(entries_[i].first_sum);
    const auto size = static_cast<size_t>(entries_[i].metric->size());
    values.emplace_back(names_[i], entries_[i].metric->Compute(totals.subspan(first, size)));
  }
  return values;
}

Result<std::unique_ptr<MetricReader>> MetricReader::Create(const MetricSet& set, const Frame& frame) {
  std::unique_ptr<MetricReader> reader(new MetricReader);
  reader->set_ = &set;
  for (const MetricSet::Entry& entry : set.entries_) {
    const Variable* variable = frame.Find(entry.prediction);
    if (variable == nullptr || !variable->Is<Tensor>()) {
      return InvalidConfig("metric: in: there is no tensor \"" + entry.prediction + "\"");
    }
    reader->predictions_.push_back(&variable->Get<Tensor>());
    reader->sums_.emplace_back(entry.metric->size());
  }
  return reader;
}

Status MetricReader::Add(const SlotBatch& batch) {
  const auto rows = static_cast<size_t>(batch.rows());
  label_buffer_.resize(rows);
  prediction_buffer_.resize(rows);
  for (size_t m = 0; m < predictions_.size(); ++m) {
    const MetricSet::Entry& entry = set_->entries_[m];
    const Tensor& tensor = *predictions_[m];
    const int64_t width = rows == 0 ? 0 : tensor.numel() / static_cast<int64_t>(rows);
    if (width * static_cast<int64_t>(rows) != tensor.numel() || (rows > 0 && width == 0)) {
      return InvalidConfig("metric " + set_->names_[m] + ": \"" + entry.prediction + "\" has the shape " +
                           tensor.dims().ToString() + " for " + std::to_string(rows) + " rows");
    }
    // The last class is the click's.
    const float* values = tensor.data<float>() + (width - 1);
    for (size_t i = 0; i < rows; ++i) prediction_buffer_[i] = values[i * static_cast<size_t>(width)];
    const SlotSpec& label = batch.schema().used()[static_cast<size_t>(entry.label)];
    if (label.type == SlotType::kFloat) {
      const std::span<const float> floats = batch.floats(entry.label);
      std::copy_n(floats.begin(), rows, label_buffer_.begin());
    } else {
      const std::span<const uint64_t> ids = batch.ids(entry.label);
      std::transform(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(rows), label_buffer_.begin(),
                     [](uint64_t id) { return static_cast<float>(id); });
    }
    MetricRows metric_rows{prediction_buffer_, label_buffer_, {}};
    if (entry.group >= 0) {
      group_buffer_.resize(rows);
      const std::span<const uint64_t> ids = batch.ids(entry.group);
      const std::span<const uint32_t> offsets = batch.offsets(entry.group);
      const auto group_width = static_cast<size_t>(batch.schema().used()[static_cast<size_t>(entry.group)].width);
      for (size_t i = 0; i < rows; ++i) {
        const size_t at = offsets.empty() ? i * group_width : offsets[i];
        const bool any = offsets.empty() || offsets[i] < offsets[i + 1];
        group_buffer_[i] = any ? ids[at] : 0;
      }
      metric_rows.groups = group_buffer_;
    }
    entry.metric->Add(metric_rows, sums_[m]);
  }
  return Status::Ok();
}

void MetricReader::AddTo(std::span<double> totals) const {
  size_t at = 0;
  for (const MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i) totals[at++] += sums.Get(i);
  }
}

void MetricReader::Restore(std::span<const double> totals) {
  size_t at = 0;
  for (MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i) sums.Set(i, totals[at++]);
  }
}

void MetricReader::Clear() {
  for (MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i) sums.Set(i, 0);
  }
}

}  // namespace millrace
