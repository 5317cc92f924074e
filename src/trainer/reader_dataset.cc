#include "trainer/reader_dataset.h"

#include <algorithm>
#include <utility>

#include "core/caught.h"
#include "reader/looked_up.h"

namespace millrace {
namespace {

/// Whether an operator reads, or runs a block that does.
bool ReadsRows(const CompiledJob& job, const OpDesc& op) {
  if (!InputArguments(op, "Reader").empty()) return true;
  const std::vector<std::string>& sources = job.plugin_sources();
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (std::find(sources.begin(), sources.end(), name) != sources.end()) return true;
    }
  }
  if (BlockOf(op) < 0) return false;
  const OpList& ops = job.train().ops(BlockOf(op));
  return std::any_of(ops.begin(), ops.end(), [&job](const OpDesc& inner) { return ReadsRows(job, inner); });
}

}  // namespace

Result<std::unique_ptr<ReaderDataset>> ReaderDataset::Create(JobSession& session, Frame& frame) {
  const CompiledJob& job = session.job();
  MR_ASSIGN(ProgramReaders readers, ProgramReaders::Find(job.train(), session.root()));
  std::unique_ptr<ReaderDataset> dataset(new ReaderDataset(job, std::move(readers)));
  MarkLookedUp(job.train(), frame.scope());
  for (const std::string& name : job.plugin_sources()) {
    dataset->plugin_sources_.push_back(frame.scope().Var(name)->GetMutable<Tensor>());
  }
  const OpList& ops = job.train().ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ReadsRows(job, ops[i])) dataset->ops_ = i + 1;
  }
  return dataset;
}

Status ReaderDataset::BeginPass(const PassOptions& options) {
  workers_ = options.workers;
  if (pass_ >= 0 && pass_ != options.pass) MR_TRY(readers_.StartOver());
  pass_ = options.pass;
  rows_ = readers_.Counts().rows;
  is_taken_ = false;
  return Status::Ok();
}

Result<BatchPtr> ReaderDataset::Next(std::stop_token stop) {
  if (workers_ > 1) MR_TRY(TakeTurn(stop));
  const Result<bool> has_next = Caught("a reader", [&] { return HasNext(stop); });
  if (has_next.ok() && *has_next) return pool_.Take();
  if (workers_ > 1) GiveTurn();
  MR_TRY(has_next.status());
  return BatchPtr();
}

Result<bool> ReaderDataset::HasNext(const std::stop_token& stop) {
  MR_ASSIGN(const bool has_next, readers_.HasNext(stop));
  if (!std::exchange(may_start_over_, false) || has_next || !readers_.WasRead()) return has_next;
  MR_TRY(readers_.StartOver());
  return readers_.HasNext(stop);
}

int64_t ReaderDataset::End() {
  const int64_t before = std::exchange(rows_, readers_.Counts().rows);
  int64_t rows = rows_ - before;
  for (const Tensor* given : plugin_sources_) {
    if (!given->empty() && given->dims().rank() > 0) rows += given->dims()[0];
  }
  if (workers_ > 1) GiveTurn();
  return rows;
}

Status ReaderDataset::TakeTurn(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!turn_ended_.wait(lock, stop, [this] { return !is_taken_; })) {
    return Cancelled("stopped while waiting for the turn to read");
  }
  is_taken_ = true;
  return Status::Ok();
}

void ReaderDataset::GiveTurn() {
  {
    const std::lock_guard lock(mutex_);
    is_taken_ = false;
  }
  turn_ended_.notify_one();
}

Status ReaderDataset::GoOn(const RunState& state, const std::stop_token& stop) {
  if (state.readers.empty()) return Status::Ok();
  MR_TRY(readers_.MoveTo(state.readers, stop));
  // Earlier versions left the readers of a finished run at their end.
  if (readers_.resets() < state.epoch) MR_TRY(readers_.StartOver());
  may_start_over_ = false;
  pass_ = state.epoch;
  return Status::Ok();
}

std::vector<ReaderState> ReaderDataset::PositionsFor(const RunState& state) const {
  std::vector<ReaderState> positions = readers_.Positions();
  // The next pass begins with the readers started over.
  if (pass_ < 0 || state.epoch == pass_) return positions;
  for (ReaderState& reader : positions) reader.position = {reader.position.resets + 1, 0};
  return positions;
}

}  // namespace millrace
