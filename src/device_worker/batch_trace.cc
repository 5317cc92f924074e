#include "device_worker/batch_trace.h"

#include <algorithm>
#include <utility>

#include "core/elapsed.h"
#include "core/json_writer.h"

namespace millrace {
namespace {

double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

/// Writes the events of a process.
class EventWriter {
 public:
  explicit EventWriter(const TraceProcess& process) : process_(&process) { json_.BeginList(); }

  /// Starts an event with a duration; end it with End.
  JsonWriter& BeginSpan(int thread, std::string_view name, int64_t start, int64_t nanoseconds) {
    json_.BeginObject().Key("ph").Text("X").Key("pid").Number(process_->number).Key("tid").Number(thread);
    json_.Key("name").Text(name).Key("ts").Number(Microseconds(start)).Key("dur").Number(Microseconds(nanoseconds));
    return json_;
  }
  void EndSpan() { json_.EndObject(); }
  void AddSpan(int thread, std::string_view name, int64_t start, int64_t nanoseconds) {
    BeginSpan(thread, name, start, nanoseconds);
    EndSpan();
  }
  void NameThread(int thread, std::string_view name) { AddName("thread_name", thread, name); }
  void NameProcess() {
    if (!process_->name.empty()) AddName("process_name", 0, process_->name);
  }
  std::string Events() {
    json_.EndList();
    const std::string& list = json_.text();
    return list.substr(1, list.size() - 2);
  }

 private:
  void AddName(std::string_view what, int thread, std::string_view name) {
    json_.BeginObject().Key("ph").Text("M").Key("pid").Number(process_->number).Key("tid").Number(thread);
    json_.Key("name").Text(what).Key("args").BeginObject().Key("name").Text(name).EndObject().EndObject();
  }

  const TraceProcess* process_;
  JsonWriter json_;
};

/// Appends the readers' spans between `begin` and `end`.
void AppendReaders(EventWriter* events, const SpanLog& readers, int thread, int64_t origin, int64_t begin,
                   int64_t end) {
  for (const auto& [name, spans] : readers.spans()) {
    events->NameThread(thread, name);
    for (const SpanLog::Span& span : spans) {
      if (span.end_nanoseconds < begin || span.start_nanoseconds > end) continue;
      JsonWriter& json = events->BeginSpan(thread, span.name, span.start_nanoseconds - origin,
                                           span.end_nanoseconds - span.start_nanoseconds);
      if (!span.detail.empty()) json.Key("args").BeginObject().Key("file").Text(span.detail).EndObject();
      events->EndSpan();
    }
    ++thread;
  }
}

}  // namespace

BatchTrace::BatchTrace(int worker, int64_t first_step, int64_t batches, size_t ops, SpanLog* readers)
    : worker_(worker),
      first_step_(first_step),
      end_step_(first_step + batches),
      ops_(ops),
      readers_(readers),
      before_(ops) {
  batches_.reserve(static_cast<size_t>(batches));
  op_nanoseconds_.reserve(static_cast<size_t>(batches) * ops);
}

Status BatchTrace::OnBatch(const TrainedBatch& trained) {
  const std::vector<int64_t>& total = trained.frame.op_nanoseconds();
  const int64_t step = trained.context.step;
  if (step >= first_step_ && step < end_step_ && total.size() == ops_) {
    Batch batch;
    batch.step = step;
    batch.rows = trained.context.rows;
    batch.end_nanoseconds = SteadyNanoseconds();
    batch.read_nanoseconds = trained.read_nanoseconds;
    batch.run_nanoseconds = trained.run_nanoseconds;
    batch.first_row = trained.context.DescribeRow(0);
    batches_.push_back(std::move(batch));
    for (size_t i = 0; i < ops_; ++i) op_nanoseconds_.push_back(total[i] - before_[i]);
  }
  if (readers_ != nullptr && step >= end_step_) std::exchange(readers_, nullptr)->Close();
  if (total.size() == ops_) std::copy(total.begin(), total.end(), before_.begin());
  return Status::Ok();
}

TraceTimes TimesOf(const std::vector<const BatchTrace*>& traces) {
  TraceTimes times;
  for (const BatchTrace* trace : traces) {
    for (const BatchTrace::Batch& batch : trace->batches()) {
      times.begin = std::min(times.begin, batch.end_nanoseconds - batch.run_nanoseconds - batch.read_nanoseconds);
      times.end = std::max(times.end, batch.end_nanoseconds);
    }
  }
  return times;
}

std::string TraceEvents(const Executable& executable, const std::vector<const BatchTrace*>& traces,
                        const SpanLog* readers, const TraceTimes& times, const TraceProcess& process) {
  constexpr int64_t kBefore = 1'000'000'000;
  const int64_t origin = times.begin;
  EventWriter events(process);
  events.NameProcess();
  for (const BatchTrace* trace : traces) {
    events.NameThread(trace->worker(), "worker " + std::to_string(trace->worker()));
    int64_t last_end = INT64_MIN;
    for (size_t b = 0; b < trace->batches().size(); ++b) {
      const BatchTrace::Batch& batch = trace->batches()[b];
      const int64_t start = batch.end_nanoseconds - batch.run_nanoseconds - origin;
      // With SYNC, all batches of a step are awaited before the first one runs.
      const int64_t waited_from = std::max(start - batch.read_nanoseconds, std::min(last_end, start));
      last_end = batch.end_nanoseconds - origin;
      events.AddSpan(trace->worker(), "wait for batch", waited_from, start - waited_from);
      JsonWriter& json = events.BeginSpan(trace->worker(), "batch", start, batch.run_nanoseconds);
      json.Key("args").BeginObject().Key("step").Number(batch.step).Key("rows").Number(batch.rows);
      json.Key("first row").Text(batch.first_row).EndObject();
      events.EndSpan();
      int64_t at = start;
      for (size_t op = 0; op < executable.ops().size(); ++op) {
        const int64_t nanoseconds = trace->op_nanoseconds(b, op);
        events.AddSpan(trace->worker(), executable.ops()[op].type(), at, nanoseconds);
        at += nanoseconds;
      }
    }
  }
  if (readers != nullptr && times.end > 0) {
    AppendReaders(&events, *readers, static_cast<int>(traces.size()), origin, origin - kBefore, times.end);
  }
  return events.Events();
}

std::string ChromeTrace(const std::vector<std::string>& events) {
  std::string all;
  for (const std::string& some : events) all += (all.empty() || some.empty() ? "" : ",") + some;
  return R"({"displayTimeUnit":"ms","traceEvents":[)" + all + "]}\n";
}

}  // namespace millrace
