#include "device_worker/hogwild_worker.h"

#include <omp.h>

#include "core/elapsed.h"

namespace millrace {
namespace {

class HogwildWorker final : public DeviceWorker {
 public:
  explicit HogwildWorker(WorkerParts parts) : parts_(std::move(parts)) {}

  Status Train(BatchSource& source, std::stop_token stop) override;
  const ConsumedRanges& consumed() const override { return consumed_; }
  const WorkerReport& report() const override { return report_; }
  void StartPass(int64_t earlier_batches) override {
    consumed_.Clear();
    report_ = {.earlier_batches = earlier_batches};
  }

 private:
  Status TrainBatch(const SlotBatch& batch, int64_t read_nanoseconds, const std::stop_token& stop);
  /// Runs a program that reads, of whose operators the first need the turn; returns the examples.
  Result<int64_t> ReadAndRun(const RunContext& context);

  WorkerParts parts_;
  ConsumedRanges consumed_;
  WorkerReport report_;
};

Status HogwildWorker::Train(BatchSource& source, std::stop_token stop) {
  // The workers are the parallelism: matrix products stay in this thread.
  omp_set_num_threads(1);
  if (parts_.cpu >= 0) StayOnProcessor(parts_.cpu);
  while (true) {
    const int64_t start = SteadyNanoseconds();
    report_.input_failed = true;
    Result<BatchPtr> next = source.Next(stop);
    report_.input_failed = !next.ok();
    MR_ASSIGN(const BatchPtr batch, std::move(next));
    if (batch == nullptr) return Status::Ok();
    const int64_t read_nanoseconds = SteadyNanoseconds() - start;
    parts_.gate->Enter(parts_.index);
    // A worker that fails stays busy until it is Done: nobody checkpoints what a failed batch left behind.
    if (stop.stop_requested()) return Cancelled("training was stopped");
    MR_TRY(TrainBatch(*batch, read_nanoseconds, stop));
    parts_.gate->Leave(parts_.index);
  }
}

Status HogwildWorker::TrainBatch(const SlotBatch& batch, int64_t read_nanoseconds, const std::stop_token& stop) {
  SharedProgress& progress = *parts_.progress;
  std::unique_lock<std::mutex> turn(progress.turn, std::defer_lock);
  if (progress.steps_done.load(std::memory_order_relaxed) < progress.serialized_warmup_steps) turn.lock();
  RunContext context;
  if (parts_.reading == nullptr) context.batch = &batch;
  context.rows = batch.rows();
  context.step = progress.steps_started.fetch_add(1, std::memory_order_relaxed);
  context.file_names = parts_.file_names;
  context.lines_are_piped = parts_.lines_are_piped;
  context.stop = stop;
  const int64_t start = SteadyNanoseconds();
  const WorkerFrame& in = parts_.frames[0];
  report_.was_cut = true;
  if (parts_.dense != nullptr) MR_TRY(parts_.dense->Pull(context));
  int64_t examples = batch.rows();
  if (parts_.reading == nullptr) {
    MR_TRY(in.frame->Run(context));
  } else {
    MR_ASSIGN(examples, ReadAndRun(context));
  }
  if (parts_.dense != nullptr) {
    MR_TRY(parts_.dense->Add(0, 0, true));
    MR_TRY(parts_.dense->Push(0, context, 1));
  }
  report_.was_cut = false;
  if (turn.owns_lock()) turn.unlock();
  const int64_t run_nanoseconds = SteadyNanoseconds() - start;
  if (in.metrics != nullptr) MR_TRY(in.metrics->Add(context));
  for (const BatchSpan& span : batch.spans()) consumed_.Add(span);

  ++report_.batches;
  report_.examples += examples;
  report_.read_nanoseconds += read_nanoseconds;
  report_.run_nanoseconds += run_nanoseconds;
  progress.examples.fetch_add(examples, std::memory_order_relaxed);
  progress.pass_examples.fetch_add(examples, std::memory_order_relaxed);
  const int64_t done = progress.steps_done.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t batches = report_.earlier_batches + report_.batches;
  const TrainedBatch trained{batch, *in.frame, context, batches, read_nanoseconds, run_nanoseconds};
  for (BatchObserver* observer : in.observers) MR_TRY(observer->OnBatch(trained));
  if ((progress.pause_every > 0 && done % progress.pause_every == 0) ||
      (progress.eval_every > 0 && done % progress.eval_every == 0)) {
    parts_.gate->Ask();
  }
  return Status::Ok();
}

Result<int64_t> HogwildWorker::ReadAndRun(const RunContext& context) {
  Frame& frame = *parts_.frames[0].frame;
  MR_TRY(frame.RunOps(context, {0, parts_.reading->ops()}));
  const int64_t examples = parts_.reading->End();
  MR_TRY(frame.RunOps(context, {parts_.reading->ops(), frame.op_count()}));
  return examples;
}

}  // namespace

std::unique_ptr<DeviceWorker> MakeHogwildWorker(WorkerParts parts) {
  return std::make_unique<HogwildWorker>(std::move(parts));
}

}  // namespace millrace
