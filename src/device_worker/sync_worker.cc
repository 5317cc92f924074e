#include "device_worker/sync_worker.h"

#include <string_view>
#include <utility>

#include "core/caught.h"
#include "core/elapsed.h"

namespace millrace {
namespace {

class SyncWorker final : public DeviceWorker {
 public:
  explicit SyncWorker(WorkerParts parts)
      : parts_(std::move(parts)),
        ranks_(parts_.ranks),
        runner_(*parts_.frames[0].frame, parts_.frames[0].metrics, nullptr, parts_.input),
        streams_(static_cast<size_t>(ranks_.step->count())) {}

  Status Train(BatchSource& source, std::stop_token stop) override;
  const ConsumedRanges& consumed() const override { return consumed_; }
  const WorkerReport& report() const override { return report_; }
  void StartPass(int64_t earlier_batches) override {
    consumed_.Clear();
    report_ = {.earlier_batches = earlier_batches};
    for (Stream& stream : streams_) stream = {};
  }

 private:
  /// The source of the micro-batches with one number.
  struct Stream {
    BatchPtr batch;  ///< of the current step
    bool has_ended = false;
    int64_t read_nanoseconds = 0;
  };
  /// Reads the missing batches of the step. After a stop they stay unread: `lacks_batches`.
  Status ReadBatches(StepInput* input);
  /// Requests the rows of a stream's micro-batch, if there is one.
  Status FetchRows(size_t stream);
  /// Runs the micro-batches of this rank.
  Status RunBatches(int64_t step, const std::stop_token& stop);
  /// Runs the micro-batch with this number, in the step after `step` batches of all ranks.
  Status RunBatch(const Stream& stream, int number, int64_t step, const std::stop_token& stop);
  void Account(const StepInput& all);
  /// Records a span from `start` until now.
  void Trace(std::string_view what, int64_t start) {
    if (ranks_.spans != nullptr) ranks_.spans->Add("steps of ranks", what, "", start);
  }

  WorkerParts parts_;
  const RankParts ranks_;
  BatchRunner runner_;
  std::vector<Stream> streams_;
  ConsumedRanges consumed_;
  WorkerReport report_;
};

Status SyncWorker::Train(BatchSource& /*source*/, std::stop_token stop) {
  BecomeWorker(parts_.cpu);
  while (true) {
    StepInput mine;
    report_.input_failed = true;
    const int64_t asked = SteadyNanoseconds();
    Status read = Caught("training", [&] { return ReadBatches(&mine); });
    Trace("wait for batches", asked);
    parts_.gate->Enter(parts_.index);
    // The coordinators of all ranks stop their workers at the same boundary.
    if (stop.stop_requested()) return Cancelled("training was stopped");
    mine.wants_pause = ranks_.wants_pause->exchange(false);
    const int64_t began = SteadyNanoseconds();
    MR_ASSIGN(const StepInput all, ranks_.step->Begin(read, mine));
    report_.exchange_nanoseconds += SteadyNanoseconds() - began;
    Trace("wait for ranks", began);
    report_.input_failed = false;
    if (all.micro_batches == 0 && !all.lacks_batches) return Status::Ok();
    if (!all.lacks_batches) {
      const int64_t batches = report_.batches;
      const int64_t step = parts_.progress->steps_done.load(std::memory_order_relaxed);
      const int64_t start = SteadyNanoseconds();
      // Exceptions of one rank must also reach the others, which wait for it in Exchange.
      Status ran = Caught("training", [&] { return RunBatches(step, stop); });
      const int64_t ended = SteadyNanoseconds();
      if (Status exchanged = ranks_.step->Exchange(ran); !exchanged.ok()) {
        report_.batches = batches;  // no rank has updated: the state is that after the previous step
        return exchanged;
      }
      report_.was_cut = true;
      const Status measured = Caught("training", [&] { return runner_.MeasureKept(); });
      RunContext first = runner_.context();
      first.step = step;
      if (Status finished = ranks_.step->Finish(measured, all.micro_batches, first); !finished.ok()) {
        report_.batches = batches;
        return finished;
      }
      report_.run_nanoseconds += ended - start;
      report_.exchange_nanoseconds += SteadyNanoseconds() - ended;
      Trace("exchange", ended);
      Account(all);
      report_.was_cut = !ranks_.step->updated().ok();
    }
    if (all.wants_pause || all.lacks_batches) parts_.gate->Ask();
    parts_.gate->Leave(parts_.index);
  }
}

Status SyncWorker::ReadBatches(StepInput* input) {
  for (size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    if (stream.batch == nullptr && !stream.has_ended) {
      Result<BatchPtr> next = runner_.Take(ranks_.dataset->source(static_cast<int>(i)), ranks_.stop_reading);
      input->lacks_batches = next.status().code() == StatusCode::kCancelled && ranks_.stop_reading.stop_requested();
      if (input->lacks_batches) return Status::Ok();
      MR_ASSIGN(stream.batch, std::move(next));
      stream.has_ended = stream.batch == nullptr;
      // Added to the report in Account, because others read the report during a pause while the next batches are read.
      stream.read_nanoseconds += runner_.read_nanoseconds();
    }
    if (stream.batch == nullptr) continue;
    ++input->micro_batches;
    input->examples += stream.batch->rows();
  }
  return Status::Ok();
}

Status SyncWorker::FetchRows(size_t stream) {
  if (!ranks_.fetch || stream >= streams_.size() || streams_[stream].batch == nullptr) return Status::Ok();
  return ranks_.fetch(*streams_[stream].batch);
}

Status SyncWorker::RunBatches(int64_t step, const std::stop_token& stop) {
  MR_TRY(FetchRows(0));
  for (size_t i = 0; i < streams_.size(); ++i) {
    // Rows do not change before Finish, so those of the next micro-batch can arrive during this one.
    MR_TRY(FetchRows(i + 1));
    const int number = ranks_.step->first() + static_cast<int>(i);
    if (streams_[i].batch == nullptr) {
      ranks_.step->AddNothing(number);
      continue;
    }
    MR_TRY(RunBatch(streams_[i], number, step, stop));
    MR_TRY(ranks_.step->Add(number, streams_[i].batch->rows()));
  }
  return Status::Ok();
}

Status SyncWorker::RunBatch(const Stream& stream, int number, int64_t step, const std::stop_token& stop) {
  const int64_t start = SteadyNanoseconds();
  MR_TRY(runner_.Run(*stream.batch, step + number, stop));
  const int64_t run_nanoseconds = SteadyNanoseconds() - start;
  MR_TRY(runner_.KeepToMeasure());
  ++report_.batches;
  const int64_t batches = report_.earlier_batches + report_.batches;
  const TrainedBatch trained{*stream.batch,           runner_.frame(), runner_.context(), batches,
                             stream.read_nanoseconds, run_nanoseconds, number == 0};
  for (BatchObserver* observer : parts_.frames[0].observers) MR_TRY(observer->OnBatch(trained));
  return Status::Ok();
}

void SyncWorker::Account(const StepInput& all) {
  for (Stream& stream : streams_) {
    report_.read_nanoseconds += std::exchange(stream.read_nanoseconds, 0);
    if (stream.batch == nullptr) continue;
    for (const BatchSpan& span : stream.batch->spans()) consumed_.Add(span);
    report_.examples += stream.batch->rows();
    stream.batch.reset();
  }
  SharedProgress& progress = *parts_.progress;
  progress.examples.fetch_add(all.examples, std::memory_order_relaxed);
  progress.pass_examples.fetch_add(all.examples, std::memory_order_relaxed);
  progress.steps_started.fetch_add(all.micro_batches, std::memory_order_relaxed);
  const int64_t before = progress.steps_done.fetch_add(all.micro_batches, std::memory_order_relaxed);
  if (PauseIsDue(progress, before, before + all.micro_batches)) parts_.gate->Ask();
}

}  // namespace

std::unique_ptr<DeviceWorker> MakeSyncWorker(WorkerParts parts) {
  return std::make_unique<SyncWorker>(std::move(parts));
}

}  // namespace millrace
