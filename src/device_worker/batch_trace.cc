#include "device_worker/batch_trace.h"

#include <algorithm>
#include <utility>

#include "core/elapsed.h"
#include "core/json_writer.h"

namespace millrace {
namespace {

double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

void AppendSpan(JsonWriter* json, int thread, std::string_view name, int64_t start, int64_t nanoseconds) {
  json->BeginObject().Key("ph").Text("X").Key("pid").Number(1).Key("tid").Number(thread);
  json->Key("name").Text(name).Key("ts").Number(Microseconds(start)).Key("dur").Number(Microseconds(nanoseconds));
}

void AppendThread(JsonWriter* json, int thread, std::string_view name) {
  json->BeginObject().Key("ph").Text("M").Key("pid").Number(1).Key("tid").Number(thread);
  json->Key("name").Text("thread_name").Key("args").BeginObject().Key("name").Text(name).EndObject().EndObject();
}

/// What readers did between `begin` and `end`.
void AppendReaders(JsonWriter* json, const SpanLog& readers, int thread, int64_t origin, int64_t begin, int64_t end) {
  for (const auto& [name, spans] : readers.spans()) {
    AppendThread(json, thread, name);
    for (const SpanLog::Span& span : spans) {
      if (span.end_nanoseconds < begin || span.start_nanoseconds > end) continue;
      AppendSpan(json, thread, span.name, span.start_nanoseconds - origin,
                 span.end_nanoseconds - span.start_nanoseconds);
      if (!span.detail.empty()) json->Key("args").BeginObject().Key("file").Text(span.detail).EndObject();
      json->EndObject();
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

std::string ChromeTrace(const Executable& executable, const std::vector<const BatchTrace*>& traces,
                        const SpanLog* readers) {
  constexpr int64_t kBefore = 1'000'000'000;
  int64_t origin = INT64_MAX;
  int64_t end = 0;
  for (const BatchTrace* trace : traces) {
    for (const BatchTrace::Batch& batch : trace->batches()) {
      origin = std::min(origin, batch.end_nanoseconds - batch.run_nanoseconds - batch.read_nanoseconds);
      end = std::max(end, batch.end_nanoseconds);
    }
  }
  JsonWriter json;
  json.BeginObject().Key("displayTimeUnit").Text("ms").Key("traceEvents").BeginList();
  for (const BatchTrace* trace : traces) {
    AppendThread(&json, trace->worker(), "worker " + std::to_string(trace->worker()));
    for (size_t b = 0; b < trace->batches().size(); ++b) {
      const BatchTrace::Batch& batch = trace->batches()[b];
      const int64_t start = batch.end_nanoseconds - batch.run_nanoseconds - origin;
      AppendSpan(&json, trace->worker(), "wait for batch", start - batch.read_nanoseconds, batch.read_nanoseconds);
      json.EndObject();
      AppendSpan(&json, trace->worker(), "batch", start, batch.run_nanoseconds);
      json.Key("args").BeginObject().Key("step").Number(batch.step).Key("rows").Number(batch.rows);
      json.Key("first row").Text(batch.first_row).EndObject().EndObject();
      int64_t at = start;
      for (size_t op = 0; op < executable.ops().size(); ++op) {
        const int64_t nanoseconds = trace->op_nanoseconds(b, op);
        AppendSpan(&json, trace->worker(), executable.ops()[op].type(), at, nanoseconds);
        json.EndObject();
        at += nanoseconds;
      }
    }
  }
  if (readers != nullptr && end > 0) {
    AppendReaders(&json, *readers, static_cast<int>(traces.size()), origin, origin - kBefore, end);
  }
  json.EndList().EndObject();
  return json.text() + "\n";
}

}  // namespace millrace
