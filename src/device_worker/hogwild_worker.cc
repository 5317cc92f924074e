#include "device_worker/hogwild_worker.h"

#include "core/elapsed.h"

namespace millrace {
namespace {

class HogwildWorker final : public DeviceWorker {
 public:
  explicit HogwildWorker(WorkerParts parts)
      : parts_(std::move(parts)),
        runner_(*parts_.frames[0].frame, parts_.frames[0].metrics, parts_.dense, parts_.input, parts_.reading) {}

  Status Train(BatchSource& source, std::stop_token stop) override;
  const ConsumedRanges& consumed() const override { return consumed_; }
  const WorkerReport& report() const override { return report_; }
  void StartPass(int64_t earlier_batches) override {
    consumed_.Clear();
    report_ = {.earlier_batches = earlier_batches};
  }

 private:
  Status TrainBatch(const SlotBatch& batch, const std::stop_token& stop);

  WorkerParts parts_;
  BatchRunner runner_;
  ConsumedRanges consumed_;
  WorkerReport report_;
};

Status HogwildWorker::Train(BatchSource& source, std::stop_token stop) {
  BecomeWorker(parts_.cpu);
  while (true) {
    report_.input_failed = true;
    Result<BatchPtr> next = runner_.Take(source, stop);
    report_.input_failed = !next.ok();
    MR_ASSIGN(const BatchPtr batch, std::move(next));
    if (batch == nullptr) return Status::Ok();
    parts_.gate->Enter(parts_.index);
    // A failed worker stays busy until it is Done, so that no checkpoint contains a failed batch.
    if (stop.stop_requested()) return Cancelled("training was stopped");
    MR_TRY(TrainBatch(*batch, stop));
    parts_.gate->Leave(parts_.index);
  }
}

Status HogwildWorker::TrainBatch(const SlotBatch& batch, const std::stop_token& stop) {
  SharedProgress& progress = *parts_.progress;
  std::unique_lock<std::mutex> turn(progress.turn, std::defer_lock);
  if (progress.steps_done.load(std::memory_order_relaxed) < progress.serialized_warmup_steps) turn.lock();
  const int64_t step = progress.steps_started.fetch_add(1, std::memory_order_relaxed);
  const int64_t start = SteadyNanoseconds();
  report_.was_cut = true;
  MR_TRY(runner_.Run(batch, step, stop));
  report_.was_cut = false;
  if (turn.owns_lock()) turn.unlock();
  const int64_t run_nanoseconds = SteadyNanoseconds() - start;
  MR_TRY(runner_.Measure());
  for (const BatchSpan& span : batch.spans()) consumed_.Add(span);

  ++report_.batches;
  report_.examples += runner_.examples();
  report_.read_nanoseconds += runner_.read_nanoseconds();
  report_.run_nanoseconds += run_nanoseconds;
  progress.examples.fetch_add(runner_.examples(), std::memory_order_relaxed);
  progress.pass_examples.fetch_add(runner_.examples(), std::memory_order_relaxed);
  const int64_t done = progress.steps_done.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t batches = report_.earlier_batches + report_.batches;
  const TrainedBatch trained{batch,          runner_.frame(), runner_.context(), batches, runner_.read_nanoseconds(),
                             run_nanoseconds};
  for (BatchObserver* observer : parts_.frames[0].observers) MR_TRY(observer->OnBatch(trained));
  if (PauseIsDue(progress, done - 1, done)) parts_.gate->Ask();
  return Status::Ok();
}

}  // namespace

std::unique_ptr<DeviceWorker> MakeHogwildWorker(WorkerParts parts) {
  return std::make_unique<HogwildWorker>(std::move(parts));
}

}  // namespace millrace
