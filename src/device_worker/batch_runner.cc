#include "device_worker/batch_runner.h"

#include <utility>

#include "core/elapsed.h"

namespace millrace {

RunContext InputNames::ContextOf(const SlotBatch& batch, int64_t step, std::stop_token stop) const {
  RunContext context;
  context.batch = &batch;
  context.rows = batch.rows();
  context.step = step;
  context.file_names = files;
  context.lines_are_piped = lines_are_piped;
  context.stop = std::move(stop);
  return context;
}

Result<BatchPtr> BatchRunner::Take(BatchSource& source, const std::stop_token& stop) {
  if (stop.stop_requested()) return Cancelled("stopped between two batches");
  const int64_t start = SteadyNanoseconds();
  Result<BatchPtr> next = source.Next(stop);
  read_nanoseconds_ = SteadyNanoseconds() - start;
  return next;
}

Status BatchRunner::Run(const SlotBatch& batch, int64_t step, const std::stop_token& stop) {
  context_ = input_.ContextOf(batch, step, stop);
  if (dense_ != nullptr) MR_TRY(dense_->Pull(context_));
  examples_ = batch.rows();
  MR_TRY(reading_ == nullptr ? frame_->Run(context_) : ReadAndRun());
  if (dense_ == nullptr) return Status::Ok();
  MR_TRY(dense_->Add(0, 0, true));
  return dense_->Push(0, context_, 1);
}

Status BatchRunner::ReadAndRun() {
  context_.batch = nullptr;
  MR_TRY(frame_->RunOps(context_, {0, reading_->ops()}));
  examples_ = reading_->End();
  return frame_->RunOps(context_, {reading_->ops(), frame_->op_count()});
}

}  // namespace millrace
