#include "report/batch_observers.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/numbers.h"
#include "core/terminal.h"
#include "core/words.h"
#include "ops/loss/auc.h"
#include "program/counters.h"
#include "program/op_registry.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

constexpr int64_t kProfilePeriod = 100;

std::string LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

double ValueAt(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kFloat32: return tensor.data<float>()[i];
    case DType::kFloat64: return tensor.data<double>()[i];
    case DType::kInt64: return static_cast<double>(tensor.data<int64_t>()[i]);
    case DType::kInt32: return tensor.data<int32_t>()[i];
    case DType::kBool: return tensor.data<bool>()[i] ? 1 : 0;
    default: return std::nan("");
  }
}

Result<std::vector<double>> ValuesOf(const Variable* variable) {
  std::vector<double> values;
  if (variable == nullptr || !variable->Is<Tensor>()) return values;
  HostView host_view;
  MR_ASSIGN(const Tensor* const tensor, host_view.Of(variable->Get<Tensor>()));
  for (int64_t k = 0; k < tensor->numel(); ++k) values.push_back(ValueAt(*tensor, k));
  return values;
}

}  // namespace

std::string FetchText(const FetchLine& line) {
  std::string text = "time: [" + LocalTime() + "], batch: [" + std::to_string(line.batch) + "]";
  for (const FetchLine::Value& value : line.values) {
    text += ", " + value.label + "[" + std::to_string(value.values.size()) + "]:[";
    for (size_t i = 0; i < value.values.size(); ++i) {
      // A whole number is shown whole: it may be an id.
      const bool is_whole = std::trunc(value.values[i]) == value.values[i] && std::abs(value.values[i]) < 0x1p53;
      text += (i == 0 ? "" : " ") + (is_whole ? FixedNumber(value.values[i], 0) : GeneralNumber(value.values[i]));
    }
    text += "]";
    if (value.bound <= kLeastBound) continue;
    text += " +- " + GeneralNumber(value.bound, 2);
  }
  return text + "\n";
}

FetchObserver::FetchObserver(const CompiledJob& job, const std::vector<const Frame*>& frames,
                             const std::vector<MetricAccumulator*>& metrics, const SharedProgress& progress,
                             RunReporter* reporter)
    : job_(&job), metrics_(&metrics), progress_(&progress), reporter_(reporter) {
  for (const FetchItem& item : job.fetches()) {
    fetches_totals_ = fetches_totals_ || item.kind == FetchItem::Kind::kMetric;
    fetches_windows_ = fetches_windows_ || item.kind == FetchItem::Kind::kWindowMetric;
    if (item.kind == FetchItem::Kind::kVariable || !job.metrics().IsGrouped(item.metric)) continue;
    (item.kind == FetchItem::Kind::kMetric ? fetches_grouped_totals_ : fetches_grouped_windows_) = true;
  }
  for (const Frame* frame : frames) {
    FrameVariables& of_frame = frames_.emplace_back(FrameVariables{frame, {}});
    for (const FetchItem& item : job.fetches()) {
      of_frame.variables.push_back(item.kind == FetchItem::Kind::kVariable ? frame->Find(item.name) : nullptr);
    }
  }
}

void FetchObserver::StartPass(int64_t epoch, std::optional<MetricTotals> window) {
  epoch_ = epoch;
  earlier_window_ = std::move(window);
  totals_ = job_->metrics().NewTotals();
  window_ = job_->metrics().NewSums();
  for (MetricAccumulator* accumulator : *metrics_) accumulator->TakeWindow(window_);
}

std::optional<MetricTotals> FetchObserver::Window() const {
  if (!fetches_windows_) return std::nullopt;
  MetricTotals window = earlier_window_.has_value() ? *earlier_window_ : job_->metrics().NewTotals();
  std::vector<GroupSample> samples;
  // Rows that nobody prints a window of are not copied.
  if (!fetches_grouped_windows_) samples.swap(window.samples);
  for (const MetricAccumulator* accumulator : *metrics_) accumulator->AddWindowTo(window);
  if (!fetches_grouped_windows_) samples.swap(window.samples);
  return window;
}

void FetchObserver::LendTo(MetricTotals& totals) {
  // In a job of ranks the rows of others come to them, which are no worker's here.
  if (fetches_grouped_windows_ || job_->is_dist()) {
    for (size_t i = 0; i < totals.samples.size(); ++i) totals.samples[i].Merge(totals_.samples[i]);
    for (const MetricAccumulator* accumulator : *metrics_) accumulator->AddTo(totals);
  } else {
    is_lent_ = true;
    EndInto(totals);
  }
}

void FetchObserver::TakeBack(MetricTotals& totals) {
  if (!std::exchange(is_lent_, false)) return;
  for (size_t i = 0; i < totals.samples.size(); ++i) totals_.samples[i].Take(totals.samples[i]);
}

void FetchObserver::EndInto(MetricTotals& totals) {
  for (size_t i = 0; i < totals.samples.size(); ++i) totals.samples[i].Take(totals_.samples[i]);
  for (MetricAccumulator* accumulator : *metrics_) accumulator->EndInto(totals);
}

void FetchObserver::TakeMetrics() {
  const MetricSet& set = job_->metrics();
  if (fetches_totals_) {
    MetricTotals now = set.NewSums();
    for (const MetricAccumulator* accumulator : *metrics_) accumulator->AddTo(now);
    totals_.sums = std::move(now.sums);
  }
  if (!fetches_windows_ && !fetches_grouped_totals_) return;
  window_ = fetches_grouped_windows_ ? set.NewTotals() : set.NewSums();
  if (earlier_window_.has_value()) window_ = *std::move(earlier_window_);
  earlier_window_.reset();
  for (MetricAccumulator* accumulator : *metrics_) {
    accumulator->TakeWindow(window_);
    if (fetches_grouped_totals_) accumulator->MoveRowsTo(totals_);
  }
}

void FetchObserver::AddMetric(const FetchItem& item, FetchLine::Value* value) {
  MetricTotals& totals = item.kind == FetchItem::Kind::kMetric ? totals_ : window_;
  value->values.push_back(job_->metrics().Value(item.metric, totals));
  value->bound = job_->metrics().Bound(item.metric, totals);
}

Status FetchObserver::OnBatch(const TrainedBatch& trained) {
  const int period = job_->desc().fetch_config().print_period();
  if (period == 0 || job_->fetches().empty() || trained.worker_batches % period != 0) return Status::Ok();
  TakeMetrics();
  FetchLine line;
  line.step = trained.context.step + 1;
  line.epoch = epoch_;
  line.examples = progress_->examples.load(std::memory_order_relaxed);
  line.batch = trained.worker_batches;
  const auto seen = std::find_if(frames_.begin(), frames_.end(),
                                 [&](const FrameVariables& frame) { return frame.frame == &trained.frame; });
  const std::vector<const Variable*>& variables = seen->variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    const FetchItem& item = job_->fetches()[i];
    FetchLine::Value value{item.name, item.label, {}, 0};
    if (item.kind != FetchItem::Kind::kVariable) AddMetric(item, &value);
    if (item.kind == FetchItem::Kind::kVariable) {
      MR_ASSIGN(value.values, ValuesOf(variables[i]));
    }
    line.values.push_back(std::move(value));
  }
  if (reporter_ != nullptr) return reporter_->OnFetch(line);
  PrintOut(FetchText(line));
  std::fflush(stdout);
  return Status::Ok();
}

Status CheckVocabularies(const std::vector<ModelExport>& exports, const SlotBatch& batch, const RunContext& context) {
  for (const ModelExport& wanted : exports) {
    int row = 0;
    const std::string problem = wanted.FindIdBeyond(batch, &row);
    if (!problem.empty()) return InvalidConfig(context.DescribeRow(row) + ": " + problem);
  }
  return Status::Ok();
}

Status VocabularyObserver::OnBatch(const TrainedBatch& trained) {
  if (left_ == 0) return Status::Ok();
  --left_;
  return CheckVocabularies(*exports_, trained.batch, trained.context);
}

Result<std::vector<FetchLine::Value>> FetchedVariables(const CompiledJob& job, const Frame& frame, const Scope& root) {
  std::vector<FetchLine::Value> values;
  const auto& ops = job.model().main.blocks(0).ops();
  for (const FetchItem& item : job.fetches()) {
    if (item.kind != FetchItem::Kind::kVariable) continue;
    const auto meta = job.step().vars().find(item.name);
    const bool is_shared = meta != job.step().vars().end() && meta->second.persistable;
    const Variable* const shared = is_shared ? root.Find(item.name) : nullptr;
    MR_ASSIGN(std::vector<double> fetched, ValuesOf(shared != nullptr ? shared : frame.Find(item.name)));
    const auto auc = std::find_if(ops.begin(), ops.end(), [&](const OpDesc& op) {
      return CountsAllBatches(op) && OutputArguments(op, "AUC") == std::vector{item.name};
    });
    if (auc != ops.end() && !fetched.empty()) {
      MR_ASSIGN(const double of_all, AucOfCounts(*auc, root));
      fetched = {of_all};
    }
    values.push_back({item.name, item.label, std::move(fetched)});
  }
  return values;
}

bool PrintsNothing(const CompiledJob& job, int64_t from, int64_t to) {
  const int period = job.desc().fetch_config().print_period();
  return period == 0 || job.fetches().empty() || from / period == to / period;
}

FetchLine PointOfEpoch(const CompiledJob& job, const RunState& state, const PassReport& pass,
                       std::vector<FetchLine::Value> fetched) {
  const MetricValues& metrics = pass.metrics;
  FetchLine line;
  line.step = state.step;
  line.epoch = state.epoch;
  line.examples = state.examples;
  line.batch = state.printed_batches;
  line.values = std::move(fetched);
  // No print began a new window: it is the whole pass.
  for (const FetchItem& item : job.fetches()) {
    if (item.kind != FetchItem::Kind::kWindowMetric) continue;
    const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const auto& metric) {
      return metric.first == job.metrics().names()[item.metric];
    });
    if (found != metrics.end()) line.values.push_back({item.name, item.label, {found->second}});
  }
  const bool has_loss =
      std::any_of(line.values.begin(), line.values.end(), [](const auto& value) { return value.name == "loss"; }) ||
      std::any_of(metrics.begin(), metrics.end(), [](const auto& metric) { return metric.first == "loss"; });
  if (!has_loss && !std::isnan(pass.loss)) line.values.push_back({"loss", "loss", {pass.loss}});
  for (const auto& [name, value] : metrics) line.values.push_back({name, name, {value}});
  return line;
}

HandlerObserver::HandlerObserver(FetchHandler& handler, const std::vector<const Frame*>& frames)
    : handler_(&handler), period_(handler.period_seconds()) {
  for (const Frame* frame : frames) {
    FrameVariables& of_frame = frames_.emplace_back(FrameVariables{frame, {}});
    for (const auto& [key, name] : handler.variables()) of_frame.variables[key] = frame->Find(name);
  }
}

Status HandlerObserver::OnBatch(const TrainedBatch& trained) {
  if (Clock::now() - last_ < period_) return Status::Ok();
  last_ = Clock::now();
  std::map<std::string, const Tensor*> values;
  std::map<std::string, HostView> views;
  for (const FrameVariables& of_frame : frames_) {
    if (of_frame.frame != &trained.frame) continue;
    for (const auto& [key, variable] : of_frame.variables) {
      const bool has_tensor = variable != nullptr && variable->Is<Tensor>() && !variable->Get<Tensor>().empty();
      values[key] = nullptr;
      if (has_tensor) {
        MR_ASSIGN(values[key], views[key].Of(variable->Get<Tensor>()));
      }
    }
  }
  return handler_->Handle(values);
}

Status ProfileObserver::OnBatch(const TrainedBatch& trained) {
  ++batches_;
  examples_ += trained.context.rows;
  read_nanoseconds_ += trained.read_nanoseconds;
  run_nanoseconds_ += trained.run_nanoseconds;
  if (batches_ % kProfilePeriod != 0) return Status::Ok();
  const std::vector<int64_t>& ops = trained.frame.op_nanoseconds();
  const auto batches = static_cast<double>(batches_);
  std::string text;
  for (size_t i = 0; i < ops.size(); ++i) {
    text += "op_name:[" + std::to_string(i) + "][" + trained.frame.op_type(i) + "], op_mean_time:[" +
            FixedNumber(1e-9 * static_cast<double>(ops[i]) / batches, 6) + "s]\n";
  }
  const double read = 1e-9 * static_cast<double>(read_nanoseconds_);
  const double run = 1e-9 * static_cast<double>(run_nanoseconds_);
  text += "mean read time: " + FixedNumber(read / batches, 6) + "s\n";
  text += "IO percent: " + FixedNumber(100 * read / (read + run), 6) + "\n";
  const std::string rate = FixedNumber(static_cast<double>(examples_) / (read + run), 2);
  Say(text + std::string(rate.size() < 6 ? 6 - rate.size() : 0, ' ') + rate + " instances/s\n");
  return Status::Ok();
}

}  // namespace millrace
