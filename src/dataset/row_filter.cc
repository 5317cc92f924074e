#include "dataset/row_filter.h"

#include <algorithm>
#include <utility>

#include "dataset/batch_rows.h"

namespace millrace {

BatchPtr RowFilter::Put(BatchPtr batch) {
  Thin(*batch);
  if (kept_ == nullptr) {
    kept_ = std::move(batch);
  } else if (kept_->rows() == 0 || batch->rows() == 0) {
    // Lines without a row belong to the adjacent rows.
    for (const BatchSpan& span : batch->spans()) AppendSpan(span, kept_->mutable_spans());
    if (batch->rows() > 0) {
      std::swap(batch->mutable_spans(), kept_->mutable_spans());
      kept_ = std::move(batch);
    }
  } else {
    const int taken = std::min(batch->rows(), batch_size_ - kept_->rows());
    AppendRows(*batch, 0, taken, *kept_);
    if (taken < batch->rows()) {
      BatchPtr full = std::exchange(kept_, pool_->Take());
      AppendRows(*batch, taken, batch->rows(), *kept_);
      return full;
    }
  }
  return kept_->rows() == batch_size_ ? TakeRest() : BatchPtr();
}

BatchPtr RowFilter::TakeRest() { return std::exchange(kept_, BatchPtr()); }

void RowFilter::Thin(SlotBatch& batch) {
  uint32_t file = 0;
  thinning_.BeginFile((*files_)[0], 0);
  KeepRows(batch, [&](int row) {
    const RowOrigin origin = batch.origins()[static_cast<size_t>(row)];
    if (origin.file != file) {
      file = origin.file;
      thinning_.BeginFile((*files_)[file], file);
    }
    return thinning_.Keeps(batch, row, origin.line);
  });
}

}  // namespace millrace
