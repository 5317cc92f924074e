#include "metrics/metric_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <utility>

#include "core/caught.h"
#include "core/lower_case.h"
#include "core/numbers.h"
#include "kernels/non_finite.h"
#include "program/var_meta.h"
#include "runtime/batch_check.h"

namespace millrace {
namespace {

constexpr size_t kLossSums = 2;  // the loss of each batch times its rows, the rows

/// Creates a metric, possibly of a plugin.
Result<std::unique_ptr<Metric>> Make(const std::string& kind, const MetricInfo& info) {
  const std::string what = "the metric \"" + kind + "\"";
  return CaughtMaking(what, [&]() -> Result<std::unique_ptr<Metric>> {
    std::unique_ptr<Metric> metric = info.make();
    if (metric != nullptr && metric->size() < 1) {
      return InvalidConfig("making " + what + ": it keeps " + std::to_string(metric->size()) +
                           " sums; it needs one or more");
    }
    return metric;
  });
}

int64_t RowsOutside(const MetricInfo& info, std::span<const float> predictions) {
  if (info.reads != MetricReads::kProbabilitiesOnly) return 0;
  return std::count_if(predictions.begin(), predictions.end(), [](float p) { return !(p >= 0 && p <= 1); });
}

}  // namespace

int64_t ClippedRows(const MetricInfo& info, std::span<const float> predictions, bool are_logits) {
  if (info.clipped_at == 0) return 0;
  const double least = info.clipped_at;
  const double most = std::log((1 - least) / least);
  return std::count_if(predictions.begin(), predictions.end(), [=](float prediction) {
    const auto p = static_cast<double>(prediction);
    return are_logits ? std::abs(p) > most : p < least || p > 1 - least;
  });
}

std::string ClippedText(const std::string& name, const MetricInfo& info, int64_t rows) {
  const std::string clip = ShortestNumber(info.clipped_at);
  return name + ": " + std::to_string(rows) + (rows == 1 ? " prediction is" : " predictions are") + " nearer than " +
         clip + " to 0 or 1 and " + (rows == 1 ? "counts" : "count") + " as " + clip + " from it";
}

Result<std::unique_ptr<const MetricSet>> MetricSet::Create(const std::vector<MetricSpec>& specs,
                                                           const SlotSchema& schema, const MetricRegistry& registry,
                                                           const std::string& loss) {
  auto set = std::make_unique<MetricSet>();
  set->loss_ = loss;
  std::vector<std::string> kinds;
  for (const MetricSpec& spec : specs) {
    MR_ASSIGN(const MetricInfo* info, registry.Get(spec.kind));
    Entry entry;
    // Logits far from 0 have the same single-precision probability.
    entry.by_logit = !spec.logit.empty() && (info->make == nullptr || info->of_logits != nullptr);
    if (info->make != nullptr && entry.by_logit) {
      entry.metric = info->of_logits();
    } else if (info->make != nullptr) {
      MR_ASSIGN(entry.metric, Make(spec.kind, *info));
    }
    entry.prediction = entry.by_logit ? spec.logit : spec.prediction;
    entry.weights = spec.weights;
    if (!spec.weights.empty() && !info->is_weighted) {
      return InvalidConfig("metric " + spec.kind + ": it counts every example once, and the loss weighs them");
    }
    entry.label = schema.Find(spec.label);
    entry.group = spec.group.empty() ? -1 : schema.Find(spec.group);
    if (entry.label < 0) return InvalidConfig("metric: label: no used slot \"" + spec.label + "\"");
    if (entry.metric == nullptr) {
      if (entry.group < 0) return InvalidConfig("metric " + spec.kind + ": group: no used slot \"" + spec.group + "\"");
      entry.first = set->no_samples_.size();
      set->no_samples_.emplace_back(static_cast<size_t>(std::max<int64_t>(spec.max_rows, 1)));
    } else {
      entry.first = set->sums_;
      set->sums_ += static_cast<size_t>(entry.metric->size());
    }
    if (info->exact != nullptr) entry.examples = set->exact_++;
    entry.info = *info;
    entry.looks_for = info->labels;
    // Each label is checked once, by the strictest metric.
    for (Entry& other : set->entries_) {
      if (other.label == entry.label && other.weights == entry.weights)
        (other.looks_for < entry.looks_for ? other : entry).looks_for = MetricLabels::kAny;
    }
    kinds.push_back(spec.name.empty() ? LowerCase(spec.kind) : spec.name);
    const auto same = std::count(kinds.begin(), kinds.end(), kinds.back());
    set->names_.push_back(kinds.back() + (same > 1 ? "_" + std::to_string(same) : ""));
    set->entries_.push_back(std::move(entry));
  }
  set->loss_sums_ = set->sums_;
  set->sums_ += kLossSums;
  set->counts_ = set->sums_;
  set->sums_ += kCounts * set->entries_.size();
  return std::unique_ptr<const MetricSet>(std::move(set));
}

std::optional<MetricBetter> MetricSet::Better(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return std::nullopt;
  return entries_[static_cast<size_t>(found - names_.begin())].info.better;
}

std::vector<std::string> MetricSet::Variables() const {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Entry& entry : entries_) add(entry.prediction);
  for (const Entry& entry : entries_) add(entry.weights);
  return names;
}

MetricTotals MetricSet::NewTotals() const { return {std::vector<double>(sums_), no_samples_, {}}; }

std::span<const double> MetricSet::Sums(size_t index, const MetricTotals& totals) const {
  if (CountOf(kNonFinite, index, totals) > 0) return {};
  const Entry& entry = entries_[index];
  return std::span(totals.sums).subspan(entry.first, static_cast<size_t>(entry.metric->size()));
}

double MetricSet::Value(size_t index, MetricTotals& totals) const {
  const Entry& entry = entries_[index];
  const bool is_none = CountOf(kNonFinite, index, totals) > 0 || CountOf(kOutside, index, totals) > 0;
  if (is_none) return std::numeric_limits<double>::quiet_NaN();
  if (entry.metric == nullptr) return GroupedAuc(totals.samples[entry.first]);
  const std::optional<std::span<const ExampleRow>> examples = Examples(index, totals);
  return examples.has_value() ? entry.info.exact(*examples) : entry.metric->Compute(Sums(index, totals));
}

std::optional<std::span<const ExampleRow>> MetricSet::Examples(size_t index, MetricTotals& totals) const {
  const Entry& entry = entries_[index];
  if (entry.info.exact == nullptr || totals.examples.empty()) return std::nullopt;
  ExampleRows& examples = totals.examples[entry.examples];
  return examples.is_whole() ? std::optional(examples.Sorted()) : std::nullopt;
}

double MetricSet::Bound(size_t index, const MetricTotals& totals) const {
  const Entry& entry = entries_[index];
  const bool is_exact = !totals.examples.empty() && totals.examples[entry.examples].is_whole();
  if (entry.info.bound == nullptr || is_exact || CountOf(kNonFinite, index, totals) > 0) return 0;
  return entry.info.bound(Sums(index, totals));
}

std::string MetricSet::WhyNone(size_t index, const MetricTotals& totals) const {
  const Entry& entry = entries_[index];
  const auto rows = [](double count, const char* what) {
    return std::to_string(static_cast<int64_t>(count)) + (count == 1 ? " example has " : " examples have ") + what;
  };
  // The report has a separate line for non-finite rows.
  if (CountOf(kNonFinite, index, totals) > 0) return "";
  if (const double outside = CountOf(kOutside, index, totals); outside > 0) {
    return rows(outside, "a prediction below 0 or above 1: \"") + entry.prediction +
           "\" is not a probability; leave out \"in\", or name a layer that is one";
  }
  if (entry.metric != nullptr) return "";
  if (totals.samples[entry.first].rows().empty()) {
    return CountOf(kNoted, index, totals) > 0 ? "no example has a group" : "";
  }
  return "no group has examples of both labels";
}

MetricRemarks MetricSet::Remarks(const MetricValues& values, const MetricTotals& totals) const {
  MetricRemarks remarks;
  for (size_t i = 0; i < values.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::string& name = names_[i];
    if (const double bound = Bound(i, totals); bound > 0) remarks.bounds.emplace_back(name, bound);
    const std::string why = std::isnan(values[i].second) ? WhyNone(i, totals) : "";
    if (!why.empty()) remarks.lines.emplace_back(name + " none", name + ": nan: " + why);
    const double noted = CountOf(kNoted, i, totals);
    // WhyNone reports predictions outside 0 to 1; the value is then NaN, and clipping does not matter.
    if (noted == 0 || CountOf(kOutside, i, totals) > 0) continue;
    const auto rows = static_cast<int64_t>(noted);
    if (entry.metric != nullptr) {
      remarks.lines.emplace_back(name + " clipped", ClippedText(name, entry.info, rows));
      continue;
    }
    remarks.lines.emplace_back(name + " groups", name + ": left out " + std::to_string(rows) +
                                                     (rows == 1 ? " example" : " examples") + " without a group");
  }
  return remarks;
}

std::string MetricText(const std::string& name, double value, const MetricValues& bounds) {
  std::string text = FixedNumber(value, 6);
  const auto bound = std::find_if(bounds.begin(), bounds.end(), [&](const auto& one) { return one.first == name; });
  if (bound == bounds.end() || bound->second <= kLeastBound) return text;
  return text + " +- " + GeneralNumber(bound->second, 2);
}

double MetricSet::Loss(const MetricTotals& totals) const {
  return totals.sums[loss_sums_] / totals.sums[loss_sums_ + 1];
}

int64_t MetricSet::NonFiniteRows(const MetricTotals& totals) const {
  const auto first = totals.sums.begin() + static_cast<std::ptrdiff_t>(counts_);
  const auto end = first + static_cast<std::ptrdiff_t>(entries_.size());
  return entries_.empty() ? 0 : static_cast<int64_t>(*std::max_element(first, end));
}

MetricValues MetricSet::Compute(MetricTotals& totals) const {
  MetricValues values;
  for (size_t i = 0; i < entries_.size(); ++i) values.emplace_back(names_[i], Value(i, totals));
  return values;
}

void MetricSet::Add(const MetricTotals& totals, MetricTotals* all) {
  for (size_t i = 0; i < totals.sums.size(); ++i) all->sums[i] += totals.sums[i];
  for (size_t i = 0; i < totals.samples.size(); ++i) all->samples[i].Merge(totals.samples[i]);
  if (all->examples.empty()) {
    all->examples = totals.examples;
    return;
  }
  for (size_t i = 0; i < totals.examples.size(); ++i) all->examples[i].Merge(totals.examples[i]);
}

void MetricSet::Write(const MetricTotals& totals, std::ostream& out) {
  const std::span<const double> sums = totals.sums;
  out.write(reinterpret_cast<const char*>(sums.data()), static_cast<std::streamsize>(sums.size_bytes()));
  for (const GroupSample& sample : totals.samples) sample.Write(out);
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

Result<std::unique_ptr<MetricAccumulator>> MetricAccumulator::Create(const MetricSet& set, const Frame& frame,
                                                                     const AccumulatorOptions& options) {
  std::unique_ptr<MetricAccumulator> accumulator(new MetricAccumulator(set, options));
  const auto find = [&frame](const std::string& name) -> Result<const Tensor*> {
    const Variable* variable = frame.Find(name);
    if (variable == nullptr || !variable->Is<Tensor>()) {
      return InvalidConfig("metric: in: there is no tensor \"" + name + "\"");
    }
    return &variable->Get<Tensor>();
  };
  for (const MetricSet::Entry& entry : set.entries_) {
    MR_ASSIGN(const Tensor* const prediction, find(entry.prediction));
    accumulator->predictions_.push_back(prediction);
    accumulator->weights_.push_back(nullptr);
    if (!entry.weights.empty()) {
      MR_ASSIGN(accumulator->weights_.back(), find(entry.weights));
    }
    accumulator->sums_.emplace_back(entry.metric == nullptr ? 0 : entry.metric->size());
  }
  accumulator->sums_.emplace_back(static_cast<int>(kLossSums));
  accumulator->sums_.emplace_back(static_cast<int>(MetricSet::kCounts * set.entries_.size()));
  for (size_t i = 0; options.has_windows && i < accumulator->sums_.size(); ++i) {
    accumulator->window_sums_.emplace_back(static_cast<int>(accumulator->sums_[i].size()), true);
  }
  const Variable* const loss = set.loss_.empty() ? nullptr : frame.Find(set.loss_);
  if (loss != nullptr && loss->Is<Tensor>()) accumulator->loss_ = &loss->Get<Tensor>();
  return accumulator;
}

Status MetricAccumulator::ReadLoss(std::optional<double>* loss) {
  loss->reset();
  if (loss_ == nullptr || loss_->empty() || loss_->numel() == 0)
    return Status::Ok();  // its operator may be skipped (skip_ops)
  MR_ASSIGN(const Tensor* const shown, host_view_.Of(*loss_));
  if (shown->dtype() == DType::kFloat32) *loss = shown->data<float>()[0];
  if (shown->dtype() == DType::kFloat64) *loss = shown->data<double>()[0];
  return Status::Ok();
}

void MetricAccumulator::AddLoss(const SlotBatch& batch, std::optional<double> loss) {
  if (!loss.has_value()) return;
  for (std::deque<MetricSums>* const all : {&sums_, &window_sums_}) {
    if (all->empty()) continue;
    MetricSums& sums = (*all)[set_->entries_.size()];
    sums.Add(0, *loss * batch.rows());
    sums.Add(1, batch.rows());
  }
}

Status MetricAccumulator::ReadRows(const SlotBatch& batch, size_t metric) {
  ReadLabels(batch, set_->entries_[metric].label);
  const auto rows = static_cast<size_t>(batch.rows());
  const Tensor& tensor = *predictions_[metric];
  prediction_buffer_.resize(rows);
  if (rows == 0) return Status::Ok();
  if (!HasRowOfEach(tensor, batch.rows())) {
    return InvalidConfig("metric " + set_->names_[metric] + ": \"" + set_->entries_[metric].prediction +
                         "\" has the shape " + tensor.dims().ToString() + " for " + std::to_string(rows) + " rows");
  }
  if (tensor.dtype() != DType::kFloat32) {
    return InvalidConfig("metric " + set_->names_[metric] + ": \"" + set_->entries_[metric].prediction + "\" is " +
                         std::string(DTypeName(tensor.dtype())) + ", and predictions are float32");
  }
  const size_t width = static_cast<size_t>(tensor.numel()) / rows;
  MR_ASSIGN(const Tensor* const shown, host_view_.Of(tensor));
  const float* const values = shown->data<float>();
  if (const OfClasses classes = set_->entries_[metric].info.of_classes;
      width > kClickClasses && classes != OfClasses::kLast) {
    for (size_t i = 0; i < rows; ++i) {
      prediction_buffer_[i] = ValueOfRow(classes, {values + i * width, width}, std::exchange(label_buffer_[i], 1.0F));
    }
    return Status::Ok();
  }
  // For two classes, the last value is the click's.
  for (size_t i = 0; i < rows; ++i) prediction_buffer_[i] = values[i * width + width - 1];
  return Status::Ok();
}

void MetricAccumulator::ReadLabels(const SlotBatch& batch, SlotId label) {
  const auto rows = static_cast<size_t>(batch.rows());
  label_buffer_.resize(rows);
  if (batch.schema().used()[static_cast<size_t>(label)].type == SlotType::kFloat) {
    std::copy_n(batch.floats(label).begin(), rows, label_buffer_.begin());
    return;
  }
  const std::span<const uint64_t> ids = batch.ids(label).first(rows);
  std::transform(ids.begin(), ids.end(), label_buffer_.begin(), [](uint64_t id) { return static_cast<float>(id); });
}

Status MetricAccumulator::ReadWeights(const SlotBatch& batch, size_t metric) {
  weight_buffer_.clear();
  row_buffer_.clear();
  if (weights_[metric] == nullptr) return Status::Ok();
  const auto rows = static_cast<size_t>(batch.rows());
  MR_ASSIGN(const Tensor* const shown, host_view_.Of(*weights_[metric]));
  if (static_cast<size_t>(shown->numel()) != rows || shown->dtype() != DType::kFloat32) {
    return InvalidConfig("metric " + set_->names_[metric] + ": the weights \"" + set_->entries_[metric].weights +
                         "\" are not one float for each of " + std::to_string(rows) + " rows");
  }
  const float* values = shown->data<float>();
  size_t kept = 0;
  for (size_t i = 0; i < rows; ++i) {
    if (values[i] == 0) continue;
    prediction_buffer_[kept] = prediction_buffer_[i];
    label_buffer_[kept++] = label_buffer_[i];
    weight_buffer_.push_back(values[i]);
    row_buffer_.push_back(static_cast<int>(i));
  }
  prediction_buffer_.resize(kept);
  label_buffer_.resize(kept);
  return Status::Ok();
}

void MetricAccumulator::LookAtLabels(const RunContext& context, size_t metric) const {
  const MetricSet::Entry& entry = set_->entries_[metric];
  if (options_.label_monitor == nullptr || entry.looks_for == MetricLabels::kAny) return;
  const bool two = entry.looks_for == MetricLabels::kTwo;
  const auto is_odd = [two](float y) { return two ? y != 0 && y != 1 : !(y >= 0 && y <= 1); };
  const auto count = std::count_if(label_buffer_.begin(), label_buffer_.end(), is_odd);
  if (count == 0) [[likely]]
    return;
  const auto first = std::find_if(label_buffer_.begin(), label_buffer_.end(), is_odd);
  const auto at = first - label_buffer_.begin();
  const int row = row_buffer_.empty() ? static_cast<int>(at) : row_buffer_[static_cast<size_t>(at)];
  const std::string& slot = context.batch->schema().used()[static_cast<size_t>(entry.label)].name;
  options_.label_monitor->OfMeasure("metric " + set_->names_[metric],
                                    two ? "it is for labels 0 and 1; others count as 1 above 0.5 and as 0 up to it"
                                        : "it is for labels from 0 to 1; others count as the nearer of these",
                                    {count, slot, context.DescribeRow(row), context.step, static_cast<double>(*first)});
}

void MetricAccumulator::AddGroups(const SlotBatch& batch, size_t metric) {
  const MetricSet::Entry& entry = set_->entries_[metric];
  const std::span<const uint64_t> ids = batch.ids(entry.group);
  const std::span<const uint32_t> offsets = batch.offsets(entry.group);
  const auto width = static_cast<size_t>(batch.schema().used()[static_cast<size_t>(entry.group)].width);
  int64_t without_group = 0;
  {
    const std::lock_guard lock(samples_mutex_);
    GroupSample& sample = samples_[entry.first];
    for (size_t i = 0; i < prediction_buffer_.size(); ++i) {
      const size_t row = row_buffer_.empty() ? i : static_cast<size_t>(row_buffer_[i]);
      const size_t at = offsets.empty() ? row * width : offsets[row];
      if (IsNonFinite(prediction_buffer_[i]) || IsNonFinite(label_buffer_[i])) [[unlikely]]
        continue;
      // Their groups are unknown, and need not be the same.
      if (!offsets.empty() && offsets[row] == offsets[row + 1]) {
        ++without_group;
        continue;
      }
      const float weight = WeightOf(i);
      sample.Add({ids[at], prediction_buffer_[i], label_buffer_[i] > 0.5f ? weight : -weight});
    }
  }
  AddCount(MetricSet::kNoted, metric, without_group);
}

void MetricAccumulator::AddCount(MetricSet::Counts kind, size_t metric, int64_t rows) {
  if (rows == 0) [[likely]]
    return;
  const size_t at = kind * set_->entries_.size() + metric;
  sums_.back().Add(at, static_cast<double>(rows));
  if (!window_sums_.empty()) window_sums_.back().Add(at, static_cast<double>(rows));
}

int64_t MetricAccumulator::CountNonFiniteRows() const {
  int64_t count = 0;
  for (size_t i = 0; i < prediction_buffer_.size(); ++i) {
    count += IsNonFinite(prediction_buffer_[i]) || IsNonFinite(label_buffer_[i]) ? 1 : 0;
  }
  return count;
}

void MetricAccumulator::LeaveOutNonFiniteRows() {
  size_t kept = 0;
  for (size_t i = 0; i < prediction_buffer_.size(); ++i) {
    if (IsNonFinite(prediction_buffer_[i]) || IsNonFinite(label_buffer_[i])) continue;
    if (!weight_buffer_.empty()) weight_buffer_[kept] = weight_buffer_[i];
    prediction_buffer_[kept] = prediction_buffer_[i];
    label_buffer_[kept++] = label_buffer_[i];
  }
  prediction_buffer_.resize(kept);
  label_buffer_.resize(kept);
  if (!weight_buffer_.empty()) weight_buffer_.resize(kept);
}

Status MetricAccumulator::Add(const RunContext& context) {
  std::optional<double> loss;
  MR_TRY(ReadLoss(&loss));
  AddLoss(*context.batch, loss);
  return AddMetrics(context);
}

Status MetricAccumulator::AddMetrics(const RunContext& context) {
  const SlotBatch& batch = *context.batch;
  for (size_t m = 0; m < predictions_.size(); ++m) {
    const MetricSet::Entry& entry = set_->entries_[m];
    MR_TRY(ReadRows(batch, m));
    MR_TRY(ReadWeights(batch, m));
    LookAtLabels(context, m);
    const int64_t non_finite = CountNonFiniteRows();
    AddCount(MetricSet::kNonFinite, m, non_finite);
    if (entry.metric == nullptr) {
      AddGroups(batch, m);
      continue;
    }
    if (non_finite > 0) [[unlikely]]
      LeaveOutNonFiniteRows();
    AddCount(MetricSet::kNoted, m, ClippedRows(entry.info, prediction_buffer_, entry.by_logit));
    if (!entry.by_logit) AddCount(MetricSet::kOutside, m, RowsOutside(entry.info, prediction_buffer_));
    const MetricRows rows{prediction_buffer_, label_buffer_, weight_buffer_};
    entry.metric->Add(rows, sums_[m]);
    if (options_.examples != nullptr && entry.info.exact != nullptr) options_.examples->Add(entry.examples, rows);
    if (!window_sums_.empty()) entry.metric->Add(rows, window_sums_[m]);
  }
  return Status::Ok();
}

Status MetricAccumulator::Keep(const RunContext& context) {
  if (kept_count_ == kept_.size()) {
    KeptBatch& added = kept_.emplace_back();
    added.copies.resize(2 * predictions_.size());
    for (size_t m = 0; m < predictions_.size(); ++m) {
      added.predictions.push_back(&added.copies[2 * m]);
      added.weights.push_back(weights_[m] == nullptr ? nullptr : &added.copies[2 * m + 1]);
    }
  }
  KeptBatch& kept = kept_[kept_count_];
  kept.context = context;
  MR_TRY(ReadLoss(&kept.loss));
  for (size_t m = 0; m < predictions_.size(); ++m) {
    MR_TRY(ReadRows(*context.batch, m));
    MR_TRY(ReadWeights(*context.batch, m));
    MR_TRY(CopyToHost(*predictions_[m], &kept.copies[2 * m]));
    if (weights_[m] != nullptr) MR_TRY(CopyToHost(*weights_[m], &kept.copies[2 * m + 1]));
  }
  ++kept_count_;
  return Status::Ok();
}

Status MetricAccumulator::AddKept() {
  Status added;
  for (size_t i = 0; i < kept_count_ && added.ok(); ++i) {
    KeptBatch& kept = kept_[i];
    predictions_.swap(kept.predictions);
    weights_.swap(kept.weights);
    AddLoss(*kept.context.batch, kept.loss);
    added = AddMetrics(kept.context);
    predictions_.swap(kept.predictions);
    weights_.swap(kept.weights);
  }
  kept_count_ = 0;
  return added;
}

void MetricAccumulator::AddSumsTo(MetricTotals& totals) const {
  size_t at = 0;
  for (const MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i) totals.sums[at++] += sums.Get(i);
  }
}

void MetricAccumulator::AddTo(MetricTotals& totals) const {
  AddSumsTo(totals);
  if (totals.samples.empty()) return;
  const std::lock_guard lock(samples_mutex_);
  for (size_t i = 0; i < samples_.size(); ++i) totals.samples[i].Merge(samples_[i]);
}

void MetricAccumulator::EndInto(MetricTotals& totals) {
  AddSumsTo(totals);
  const std::lock_guard lock(samples_mutex_);
  for (size_t i = 0; i < samples_.size(); ++i) totals.samples[i].Take(samples_[i]);
}

void MetricAccumulator::MoveRowsTo(MetricTotals& totals) {
  for (size_t i = 0; i < samples_.size(); ++i) {
    std::unique_lock lock(samples_mutex_);
    const GroupSample taken = samples_[i].TakeEarlierRows();
    lock.unlock();
    totals.samples[i].Merge(taken);
  }
}

void MetricAccumulator::TakeWindow(MetricTotals& window) {
  double* at = window.sums.data();
  for (MetricSums& sums : window_sums_) {
    sums.TakeInto(at);
    at += sums.size();
  }
  if (samples_.empty()) return;
  const std::lock_guard lock(samples_mutex_);
  for (size_t i = 0; i < samples_.size(); ++i) {
    if (!window.samples.empty()) window.samples[i].MergeWindow(samples_[i]);
    samples_[i].StartWindow();
  }
}

void MetricAccumulator::AddWindowTo(MetricTotals& window) const {
  size_t at = 0;
  for (const MetricSums& sums : window_sums_) {
    for (size_t i = 0; i < sums.size(); ++i) window.sums[at++] += sums.Get(i);
  }
  if (window.samples.empty()) return;
  const std::lock_guard lock(samples_mutex_);
  for (size_t i = 0; i < samples_.size(); ++i) window.samples[i].MergeWindow(samples_[i]);
}

void MetricAccumulator::Restore(const MetricTotals& totals) {
  size_t at = 0;
  for (MetricSums& sums : sums_) {
    for (size_t i = 0; i < sums.size(); ++i) sums.Set(i, totals.sums[at++]);
  }
  samples_ = totals.samples;
}

void MetricAccumulator::Clear() {
  for (MetricSums& sums : sums_) sums.Clear();
  for (MetricSums& sums : window_sums_) sums.Clear();
  for (GroupSample& sample : samples_) sample.Clear();
}

}  // namespace millrace
