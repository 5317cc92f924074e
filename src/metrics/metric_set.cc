#include "metrics/metric_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "metrics/metric_list.h"

namespace millrace {

namespace {

constexpr std::string_view kGroupedAucName = "gauc";

}  // namespace

Result<std::unique_ptr<const MetricSet>> MetricSet::Create(const std::vector<MetricSpec>& specs,
                                                           const SlotSchema& schema) {
  auto set = std::make_unique<MetricSet>();
  std::vector<std::string> kinds;
  for (const MetricSpec& spec : specs) {
    Entry entry;
    entry.metric = MakeMetric(spec.kind);
    entry.prediction = spec.prediction;
    entry.label = schema.Find(spec.label);
    entry.group = spec.group.empty() ? -1 : schema.Find(spec.group);
    if (entry.label < 0) return InvalidConfig("metric: label: no used slot \"" + spec.label + "\"");
    if (entry.metric == nullptr) {
      if (entry.group < 0) return InvalidConfig("metric GAUC: group: no used slot \"" + spec.group + "\"");
      entry.first = set->no_samples_.size();
      set->no_samples_.emplace_back(static_cast<size_t>(std::max<int64_t>(spec.max_rows, 1)));
    } else {
      entry.first = set->sums_;
      set->sums_ += static_cast<size_t>(entry.metric->size());
    }
    entry.looks_for = entry.metric == nullptr ? MetricLabels::kTwo : entry.metric->labels();
    // One look at a label is enough, the strictest.
    for (Entry& other : set->entries_) {
      if (other.label == entry.label)
        (other.looks_for < entry.looks_for ? other : entry).looks_for = MetricLabels::kAny;
    }
    kinds.emplace_back(entry.metric == nullptr ? kGroupedAucName : entry.metric->name());
    const auto same = std::count(kinds.begin(), kinds.end(), kinds.back());
    set->names_.push_back(kinds.back() + (same > 1 ? "_" + std::to_string(same) : ""));
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

MetricTotals MetricSet::NewTotals() const { return {std::vector<double>(sums_), no_samples_}; }

double MetricSet::Value(size_t index, const MetricTotals& totals) const {
  const Entry& entry = entries_[index];
  if (entry.metric == nullptr) return GroupedAuc(totals.samples[entry.first]);
  const auto size = static_cast<size_t>(entry.metric->size());
  return entry.metric->Compute(std::span(totals.sums).subspan(entry.first, size));
}

MetricValues MetricSet::Compute(const MetricTotals& totals) const {
  MetricValues values;
  for (size_t i = 0; i < entries_.size(); ++i) values.emplace_back(names_[i], Value(i, totals));
  return values;
}

std::string MetricSet::ToBytes(const MetricTotals& totals) {
  std::string bytes(reinterpret_cast<const char*>(totals.sums.data()), totals.sums.size() * sizeof(double));
  for (const GroupSample& sample : totals.samples) sample.AppendBytes(&bytes);
  return bytes;
}

std::optional<MetricTotals> MetricSet::FromBytes(std::string_view bytes) const {
  std::optional<MetricTotals> totals = TakeBytes(&bytes);
  return bytes.empty() ? std::move(totals) : std::nullopt;
}

std::optional<MetricTotals> MetricSet::TakeBytes(std::string_view* bytes) const {
  MetricTotals totals = NewTotals();
  const size_t sum_bytes = sums_ * sizeof(double);
  if (bytes->size() < sum_bytes) return std::nullopt;
  bytes->copy(reinterpret_cast<char*>(totals.sums.data()), sum_bytes);
  bytes->remove_prefix(sum_bytes);
  for (GroupSample& sample : totals.samples) {
    if (!sample.TakeBytes(bytes)) return std::nullopt;
  }
  return totals;
}

Result<std::unique_ptr<MetricReader>> MetricReader::Create(const MetricSet& set, const Frame& frame,
                                                           OddLabels* odd_labels) {
  std::unique_ptr<MetricReader> reader(new MetricReader(set, odd_labels));
  for (const MetricSet::Entry& entry : set.entries_) {
    const Variable* variable = frame.Find(entry.prediction);
    if (variable == nullptr || !variable->Is<Tensor>()) {
      return InvalidConfig("metric: in: there is no tensor \"" + entry.prediction + "\"");
    }
    reader->predictions_.push_back(&variable->Get<Tensor>());
    reader->sums_.emplace_back(entry.metric == nullptr ? 0 : entry.metric->size());
  }
  reader->window_start_.resize(set.sums_);
  return reader;
}

Status MetricReader::ReadPredictions(const SlotBatch& batch, size_t metric) {
  const auto rows = static_cast<size_t>(batch.rows());
  const Tensor& tensor = *predictions_[metric];
  const int64_t width = rows == 0 ? 0 : tensor.numel() / static_cast<int64_t>(rows);
  if (width * static_cast<int64_t>(rows) != tensor.numel() || (rows > 0 && width == 0)) {
    return InvalidConfig("metric " + set_->names_[metric] + ": \"" + set_->entries_[metric].prediction +
                         "\" has the shape " + tensor.dims().ToString() + " for " + std::to_string(rows) + " rows");
  }
  if (tensor.dtype() != DType::kFloat32) {
    return InvalidConfig("metric " + set_->names_[metric] + ": \"" + set_->entries_[metric].prediction + "\" is " +
                         std::string(DTypeName(tensor.dtype())) + ", and predictions are float32");
  }
  prediction_buffer_.resize(rows);
  // The last class is the click's.
  const float* values = tensor.data<float>() + (width - 1);
  for (size_t i = 0; i < rows; ++i) prediction_buffer_[i] = values[i * static_cast<size_t>(width)];
  return Status::Ok();
}

void MetricReader::ReadLabels(const SlotBatch& batch, SlotId label) {
  const auto rows = static_cast<size_t>(batch.rows());
  label_buffer_.resize(rows);
  if (batch.schema().used()[static_cast<size_t>(label)].type == SlotType::kFloat) {
    std::copy_n(batch.floats(label).begin(), rows, label_buffer_.begin());
    return;
  }
  const std::span<const uint64_t> ids = batch.ids(label).first(rows);
  std::transform(ids.begin(), ids.end(), label_buffer_.begin(), [](uint64_t id) { return static_cast<float>(id); });
}

void MetricReader::LookAtLabels(const RunContext& context, size_t metric) const {
  const MetricSet::Entry& entry = set_->entries_[metric];
  if (odd_labels_ == nullptr || entry.looks_for == MetricLabels::kAny) return;
  const bool two = entry.looks_for == MetricLabels::kTwo;
  const auto is_odd = [two](float y) { return two ? y != 0 && y != 1 : !(y >= 0 && y <= 1); };
  const auto count = std::count_if(label_buffer_.begin(), label_buffer_.end(), is_odd);
  if (count == 0) [[likely]]
    return;
  const auto first = std::find_if(label_buffer_.begin(), label_buffer_.end(), is_odd);
  const std::string& slot = context.batch->schema().used()[static_cast<size_t>(entry.label)].name;
  odd_labels_->OfMeasure("metric " + set_->names_[metric],
                         two ? "it is for labels 0 and 1; others count as 1 above 0.5 and as 0 up to it"
                             : "it is for labels from 0 to 1; others count as the nearer of these",
                         {count, slot, context.DescribeRow(static_cast<int>(first - label_buffer_.begin())),
                          context.step, static_cast<double>(*first)});
}

void MetricReader::AddGroups(const SlotBatch& batch, const MetricSet::Entry& entry) {
  const std::span<const uint64_t> ids = batch.ids(entry.group);
  const std::span<const uint32_t> offsets = batch.offsets(entry.group);
  const auto width = static_cast<size_t>(batch.schema().used()[static_cast<size_t>(entry.group)].width);
  const std::lock_guard lock(samples_mutex_);
  GroupSample& sample = samples_[entry.first];
  for (size_t i = 0; i < prediction_buffer_.size(); ++i) {
    const size_t at = offsets.empty() ? i * width : offsets[i];
    const bool any = offsets.empty() || offsets[i] < offsets[i + 1];
    const float prediction = prediction_buffer_[i];
    // A NaN has no place in an order: it counts as the lowest.
    const float ranked = std::isnan(prediction) ? -std::numeric_limits<float>::infinity() : prediction;
    sample.Add({any ? ids[at] : 0, ranked, label_buffer_[i]});
  }
}

Status MetricReader::Add(const RunContext& context) {
  const SlotBatch& batch = *context.batch;
  for (size_t m = 0; m < predictions_.size(); ++m) {
    const MetricSet::Entry& entry = set_->entries_[m];
    MR_TRY(ReadPredictions(batch, m));
    ReadLabels(batch, entry.label);
    LookAtLabels(context, m);
    if (entry.metric == nullptr) {
      AddGroups(batch, entry);
    } else {
      entry.metric->Add({prediction_buffer_, label_buffer_}, sums_[m]);
    }
  }
  return Status::Ok();
}

void MetricReader::AddTo(MetricTotals& totals) const {
  size_t at = 0;
  for (const MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i) totals.sums[at++] += sums.Get(i);
  }
  if (samples_.empty()) return;
  const std::lock_guard lock(samples_mutex_);
  for (size_t i = 0; i < samples_.size(); ++i) totals.samples[i].Merge(samples_[i]);
}

void MetricReader::TakeWindow(MetricTotals& window) {
  size_t at = 0;
  for (const MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i, ++at) {
      const double now = sums.Get(i);
      window.sums[at] += now - std::exchange(window_start_[at], now);
    }
  }
  if (samples_.empty()) return;
  const std::lock_guard lock(samples_mutex_);
  for (size_t i = 0; i < samples_.size(); ++i) {
    window.samples[i].MergeWindow(samples_[i]);
    samples_[i].StartWindow();
  }
}

void MetricReader::AddWindowTo(MetricTotals& window) const {
  size_t at = 0;
  for (const MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i, ++at) window.sums[at] += sums.Get(i) - window_start_[at];
  }
  if (samples_.empty()) return;
  const std::lock_guard lock(samples_mutex_);
  for (size_t i = 0; i < samples_.size(); ++i) window.samples[i].MergeWindow(samples_[i]);
}

void MetricReader::Restore(const MetricTotals& totals) {
  size_t at = 0;
  for (MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i) sums.Set(i, totals.sums[at++]);
  }
  samples_ = totals.samples;
}

void MetricReader::Clear() {
  for (MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i) sums.Set(i, 0);
  }
  std::fill(window_start_.begin(), window_start_.end(), 0);
  for (GroupSample& sample : samples_) sample.Clear();
}

}  // namespace millrace
