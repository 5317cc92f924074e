#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batch/batch_pool.h"
#include "dataset/label_thinning.h"

namespace millrace {

/// Removes rows from a reader's batches and regroups the remaining rows into batches, in order. Batch boundaries depend
/// only on the rows, not on where reading started, which differs in a resumed run.
class RowFilter {
 public:
  /// `files` and `pool` must outlive it.
  RowFilter(const LabelThinning& thinning, const std::vector<std::string>& files, BatchPool& pool, int batch_size)
      : thinning_(thinning), files_(&files), pool_(&pool), batch_size_(batch_size) {}

  /// Adds the next batch, of at most batch_size rows. Returns a full batch, or null if there is none yet.
  BatchPtr Put(BatchPtr batch);
  /// The incomplete rest, possibly lines without rows; null: nothing.
  BatchPtr TakeRest();
  int64_t left_out() const { return thinning_.removed(); }

 private:
  void Thin(SlotBatch& batch);

  LabelThinning thinning_;
  const std::vector<std::string>* files_;
  BatchPool* pool_;
  int batch_size_;
  BatchPtr kept_;  ///< fewer than batch_size rows; null: none
};

}  // namespace millrace
