#include "device_worker/section_worker.h"

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "core/caught.h"
#include "core/elapsed.h"
#include "core/numbers.h"
#include "core/words.h"

namespace millrace {
namespace {

/// Times of a section's threads in a pass.
struct SectionTimes {
  int64_t tasks = 0;
  int64_t run_nanoseconds = 0;
  int64_t update_nanoseconds = 0;
  int64_t wait_nanoseconds = 0;
};

class SectionWorker final : public DeviceWorker {
 public:
  explicit SectionWorker(WorkerParts parts)
      : parts_(std::move(parts)),
        pipeline_(parts_.pipeline),
        schedule_(pipeline_.schedule),
        next_sum_(At(pipeline_.program->sections())),
        times_(At(pipeline_.program->sections())) {}

  Status Train(BatchSource& source, std::stop_token stop) override;
  const ConsumedRanges& consumed() const override { return consumed_; }
  const WorkerReport& report() const override { return report_; }
  void StartPass(int64_t earlier_batches) override {
    consumed_.Clear();
    report_ = {.earlier_batches = earlier_batches};
    times_.assign(times_.size(), {});
  }

 private:
  struct MicroBatch {
    BatchPtr batch;
    RunContext context;
    int64_t read_nanoseconds = 0;
  };

  Status TrainMiniBatches(BatchSource& source, const std::stop_token& stop);
  Result<bool> ReadMiniBatch(BatchSource& source, const std::stop_token& stop);
  Status RunMiniBatch(const std::stop_token& stop);
  void Account();
  void RunSection(int section, int thread);
  Status RunTasks(int section);
  Status RunTask(const SectionTask& task);
  Status RunBackward(const SectionTask& task);
  Status FinishMicroBatch(int number);
  void End();
  void PrintProfile() const;

  size_t FrameNumber(int micro_batch) const { return At(micro_batch) % parts_.frames.size(); }
  const WorkerFrame& FrameOf(int micro_batch) const { return parts_.frames[FrameNumber(micro_batch)]; }

  WorkerParts parts_;
  const PipelineParts& pipeline_;
  ConsumedRanges consumed_;
  WorkerReport report_;

  std::vector<MicroBatch> micro_batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // The members below are guarded by the mutex while section threads run.
  MicroBatchSchedule schedule_;
  std::vector<int> next_sum_;  ///< by section: the next micro-batch whose gradients are added
  bool running_ = false;       ///< within a mini-batch
  bool ended_ = false;
  Status failure_;
  std::vector<SectionTimes> times_;
};

Status SectionWorker::Train(BatchSource& source, std::stop_token stop) {
  ended_ = false;
  failure_ = Status::Ok();
  Status status;
  {
    std::vector<std::jthread> threads;
    status = Caught("training", [&] {
      int number = 0;
      for (int s = 0; s < pipeline_.program->sections(); ++s) {
        for (int i = 0; i < pipeline_.schedule.concurrency[At(s)]; ++i, ++number) {
          threads.emplace_back([this, s, number] { RunSection(s, number); });
        }
      }
      return TrainMiniBatches(source, stop);
    });
    End();
  }
  if (pipeline_.profile) PrintProfile();
  return status;
}

void SectionWorker::End() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

Status SectionWorker::TrainMiniBatches(BatchSource& source, const std::stop_token& stop) {
  while (true) {
    MR_ASSIGN(const bool any, ReadMiniBatch(source, stop));
    if (!any) return Status::Ok();
    parts_.gate->Enter(parts_.index);
    // A failed worker stays busy until it is Done, so that no checkpoint contains a failed batch.
    if (stop.stop_requested()) return Cancelled("training was stopped");
    const int64_t start = SteadyNanoseconds();
    report_.was_cut = true;
    MR_TRY(RunMiniBatch(stop));
    report_.was_cut = false;
    report_.run_nanoseconds += SteadyNanoseconds() - start;
    Account();
    parts_.gate->Leave(parts_.index);
  }
}

Result<bool> SectionWorker::ReadMiniBatch(BatchSource& source, const std::stop_token& stop) {
  micro_batches_.clear();
  while (static_cast<int>(micro_batches_.size()) < pipeline_.micro_batches) {
    const int64_t start = SteadyNanoseconds();
    report_.input_failed = true;
    Result<BatchPtr> next = source.Next(stop);
    report_.input_failed = !next.ok();
    MR_ASSIGN(BatchPtr batch, std::move(next));
    if (batch == nullptr) break;
    MicroBatch& micro = micro_batches_.emplace_back();
    micro.batch = std::move(batch);
    micro.read_nanoseconds = SteadyNanoseconds() - start;
  }
  return !micro_batches_.empty();
}

Status SectionWorker::RunMiniBatch(const std::stop_token& stop) {
  SharedProgress& progress = *parts_.progress;
  std::unique_lock<std::mutex> turn(progress.turn, std::defer_lock);
  if (progress.steps_done.load(std::memory_order_relaxed) < progress.serialized_warmup_steps) turn.lock();
  const auto count = static_cast<int64_t>(micro_batches_.size());
  int64_t step = progress.steps_started.fetch_add(count, std::memory_order_relaxed);
  for (MicroBatch& micro : micro_batches_) {
    micro.context = parts_.input.ContextOf(*micro.batch, step++, stop);
  }
  MR_TRY(parts_.dense->Pull(micro_batches_[0].context));
  std::unique_lock lock(mutex_);
  schedule_.Start(static_cast<int>(count));
  next_sum_.assign(next_sum_.size(), 0);
  running_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return schedule_.finished() || !failure_.ok(); });
  running_ = false;
  return failure_;
}

void SectionWorker::Account() {
  SharedProgress& progress = *parts_.progress;
  for (const MicroBatch& micro : micro_batches_) {
    for (const BatchSpan& span : micro.batch->spans()) consumed_.Add(span);
  }
  const auto count = static_cast<int64_t>(micro_batches_.size());
  const int64_t before = progress.steps_done.fetch_add(count, std::memory_order_relaxed);
  if (PauseIsDue(progress, before, before + count)) parts_.gate->Ask();
  micro_batches_.clear();
}

void SectionWorker::RunSection(int section, int thread) {
  BecomeWorker(pipeline_.cpus.empty() ? -1 : pipeline_.cpus[At(thread)]);
  Status status = Caught("training", [this, section] { return RunTasks(section); });
  if (status.ok()) return;
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = std::move(status).Context("section " + std::to_string(section));
  changed_.notify_all();
}

Status SectionWorker::RunTasks(int section) {
  std::unique_lock lock(mutex_);
  while (true) {
    const int64_t start = SteadyNanoseconds();
    std::optional<SectionTask> task;
    changed_.wait(lock, [&] {
      if (ended_ || !failure_.ok()) return true;
      task = running_ ? schedule_.Take(section) : std::nullopt;
      return task.has_value();
    });
    if (!task.has_value()) return Status::Ok();
    // Taking a scope from a queue frees a place.
    changed_.notify_all();
    lock.unlock();
    const int64_t begin = SteadyNanoseconds();
    const Status status = RunTask(*task);
    const int64_t nanoseconds = SteadyNanoseconds() - begin;
    lock.lock();
    SectionTimes& times = times_[At(section)];
    ++times.tasks;
    times.wait_nanoseconds += begin - start;
    const bool is_update = task->kind == SectionTask::Kind::kUpdate;
    (is_update ? times.update_nanoseconds : times.run_nanoseconds) += nanoseconds;
    MR_TRY(status);
    schedule_.Done(*task);
    changed_.notify_all();
  }
}

Status SectionWorker::RunTask(const SectionTask& task) {
  const PipelineProgram& program = *pipeline_.program;
  if (task.kind == SectionTask::Kind::kUpdate) {
    return parts_.dense->Push(task.section, micro_batches_[0].context, static_cast<int>(micro_batches_.size()));
  }
  if (task.kind == SectionTask::Kind::kBackward) return RunBackward(task);
  MicroBatch& micro = micro_batches_[At(task.micro_batch)];
  Frame& frame = *FrameOf(task.micro_batch).frame;
  if (task.section == 0) MR_TRY(frame.Bind(micro.context));
  return frame.RunOps(micro.context, program.forward(task.section));
}

Status SectionWorker::RunBackward(const SectionTask& task) {
  const int number = task.micro_batch;
  Frame& frame = *FrameOf(number).frame;
  MR_TRY(frame.RunOps(micro_batches_[At(number)].context, pipeline_.program->backward(task.section)));
  {
    // Gradients are added in the order of micro-batches, regardless of which thread is first.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_sum_[At(task.section)] == number || !failure_.ok() || ended_; });
    if (next_sum_[At(task.section)] != number) return Cancelled("another section failed");
  }
  MR_TRY(parts_.dense->Add(task.section, FrameNumber(number), number == 0));
  if (task.section == 0) MR_TRY(FinishMicroBatch(number));
  const std::lock_guard lock(mutex_);
  ++next_sum_[At(task.section)];
  changed_.notify_all();
  return Status::Ok();
}

Status SectionWorker::FinishMicroBatch(int number) {
  const MicroBatch& micro = micro_batches_[At(number)];
  const WorkerFrame& in = FrameOf(number);
  if (in.metrics != nullptr) MR_TRY(in.metrics->Add(micro.context));
  ++report_.batches;
  report_.examples += micro.batch->rows();
  report_.read_nanoseconds += micro.read_nanoseconds;
  parts_.progress->examples.fetch_add(micro.batch->rows(), std::memory_order_relaxed);
  parts_.progress->pass_examples.fetch_add(micro.batch->rows(), std::memory_order_relaxed);
  const int64_t batches = report_.earlier_batches + report_.batches;
  const TrainedBatch trained{*micro.batch, *in.frame, micro.context, batches, micro.read_nanoseconds, 0};
  for (BatchObserver* observer : in.observers) MR_TRY(observer->OnBatch(trained));
  return Status::Ok();
}

void SectionWorker::PrintProfile() const {
  for (size_t s = 0; s < times_.size(); ++s) {
    const SectionTimes& times = times_[s];
    const auto seconds = [](int64_t nanoseconds) {
      return FixedNumber(1e-9 * static_cast<double>(nanoseconds), 6) + "s";
    };
    Say("log_for_profile card:" + std::to_string(parts_.index) + " section:" + std::to_string(s) + " threads:" +
        std::to_string(pipeline_.schedule.concurrency[s]) + " batch_count:" + std::to_string(report_.batches) +
        " task_count:" + std::to_string(times.tasks) + " cal_time:" + seconds(times.run_nanoseconds) +
        " sync_time:" + seconds(times.update_nanoseconds) + " wait_time:" + seconds(times.wait_nanoseconds) + "\n");
  }
}

}  // namespace

std::unique_ptr<DeviceWorker> MakeSectionWorker(WorkerParts parts) {
  return std::make_unique<SectionWorker>(std::move(parts));
}

}  // namespace millrace
