#include "device_worker/batch_trace.h"

#include <algorithm>
#include <chrono>

#include "core/json_writer.h"

namespace millrace {
namespace {

double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

void AppendSpan(JsonWriter* json, int worker, std::string_view name, int64_t start, int64_t nanoseconds) {
  json->BeginObject().Key("ph").Text("X").Key("pid").Number(1).Key("tid").Number(worker);
  json->Key("name").Text(name).Key("ts").Number(Microseconds(start)).Key("dur").Number(Microseconds(nanoseconds));
}

}  // namespace

BatchTrace::BatchTrace(int worker, int64_t first_step, int64_t batches, size_t ops)
    : worker_(worker), first_step_(first_step), end_step_(first_step + batches), ops_(ops), before_(ops) {
  batches_.reserve(static_cast<size_t>(batches));
  op_nanoseconds_.reserve(static_cast<size_t>(batches) * ops);
}

Status BatchTrace::OnBatch(const TrainedBatch& trained) {
  const std::vector<int64_t>& total = trained.frame.op_nanoseconds();
  const int64_t step = trained.context.step;
  if (step >= first_step_ && step < end_step_ && total.size() == ops_) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    Batch batch;
    batch.step = step;
    batch.rows = trained.context.rows;
    batch.end_nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    batch.read_nanoseconds = trained.read_nanoseconds;
    batch.run_nanoseconds = trained.run_nanoseconds;
    batch.first_row = trained.context.DescribeRow(0);
    batches_.push_back(std::move(batch));
    for (size_t i = 0; i < ops_; ++i) op_nanoseconds_.push_back(total[i] - before_[i]);
  }
  if (total.size() == ops_) std::copy(total.begin(), total.end(), before_.begin());
  return Status::Ok();
}

std::string ChromeTrace(const Executable& executable, const std::vector<const BatchTrace*>& traces) {
  int64_t origin = INT64_MAX;
  for (const BatchTrace* trace : traces) {
    for (const BatchTrace::Batch& batch : trace->batches()) {
      origin = std::min(origin, batch.end_nanoseconds - batch.run_nanoseconds - batch.read_nanoseconds);
    }
  }
  JsonWriter json;
  json.BeginObject().Key("displayTimeUnit").Text("ms").Key("traceEvents").BeginList();
  for (const BatchTrace* trace : traces) {
    json.BeginObject().Key("ph").Text("M").Key("pid").Number(1).Key("tid").Number(trace->worker());
    json.Key("name").Text("thread_name").Key("args").BeginObject().Key("name");
    json.Text("worker " + std::to_string(trace->worker())).EndObject().EndObject();
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
  json.EndList().EndObject();
  return json.text() + "\n";
}

}  // namespace millrace
