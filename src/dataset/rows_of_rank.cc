#include "dataset/rows_of_rank.h"

#include <utility>

namespace millrace {

Status RowsOfRank::BeginPass(const PassOptions& options) {
  MR_TRY(rows_->BeginPass(options));
  sources_.clear();
  for (int i = 0; i < options.workers; ++i) sources_.emplace_back(rows_->source(i), rank_);
  return Status::Ok();
}

Result<BatchPtr> RowsOfRank::Source::Next(std::stop_token stop) {
  MR_ASSIGN(BatchPtr batch, source_->Next(std::move(stop)));
  if (batch == nullptr) return batch;
  for (BatchSpan& span : batch->mutable_spans()) span.source = rank_;
  return batch;
}

}  // namespace millrace
