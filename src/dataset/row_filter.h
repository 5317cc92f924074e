#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batch/batch_pool.h"
#include "dataset/label_thinning.h"

namespace millrace {

/// Leaves rows out of a reader's batches and cuts the rows that stay into batches anew, in their order: where a batch
/// ends depends on the rows alone, and not on where the reader began, which a run that goes on does elsewhere.
class RowFilter {
 public:
  /// `files` and `pool` must outlive it.
  RowFilter(const LabelThinning& thinning, const std::vector<std::string>& files, BatchPool& pool, int batch_size)
      : thinning_(thinning), files_(&files), pool_(&pool), batch_size_(batch_size) {}

  /// Takes the batch that follows, of at most batch_size rows. Returns the next full one; null: there is none yet.
  BatchPtr Put(BatchPtr batch);
  /// What is not a full batch, be it lines without rows; null: nothing.
  BatchPtr TakeRest();
  int64_t left_out() const { return left_out_; }

 private:
  void Thin(SlotBatch& batch);

  LabelThinning thinning_;
  const std::vector<std::string>* files_;
  BatchPool* pool_;
  int batch_size_;
  BatchPtr kept_;  ///< fewer than batch_size rows; null: none
  int64_t left_out_ = 0;
};

}  // namespace millrace
