#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/file_queue.h"
#include "core/span_log.h"
#include "datafeed/data_feed.h"
#include "dataset/dataset.h"
#include "dataset/held_rows.h"
#include "dataset/label_thinning.h"

namespace millrace {

struct QueueDatasetOptions {
  int threads = 1;             ///< that read and parse, when desc.thread_num is not set
  int prefetch_batches = 0;    ///< DatasetDesc.prefetch_batches, which may wait for workers; 0: two for each worker
  std::string output_dir;      ///< where QUARANTINE writes bad_lines.txt when the policy names no file
  bool reads_ahead = true;     ///< false: the one worker reads for itself (QueuePassOptions::readers)
  SpanLog* spans = nullptr;    ///< what readers did when, for a trace; null: none. Outlives the dataset
  std::string traced_as = {};  ///< what the names of its readers in a trace begin with
  std::stop_token stop = {};   ///< ends Create's look at many files: kCancelled
  /// Of a dataset that reads its files together with others, which have the same list: makes what says, in each pass,
  /// which file is whose. A file is read by one of them. Empty: all files are this dataset's.
  FileQueueOfPass shared_files = {};
  ThinnedLabel thinned = {};
  HeldRows held = {};
};

/// Streams files: reader threads parse blocks of lines into batches, one channel hands them to the workers.
///
/// Readers do not depend on the number of files; every pass reads the files again through fresh commands. Batches may
/// cross file boundaries; at most one batch of a pass is not full (none with drop_last). With `ordered`, and with one
/// reader, rows come in file and line order. Memory is bounded by readers + workers + prefetch_batches batches and a
/// block a reader. The first failure of a reader ends the pass for everyone within a second, children included.
class QueueDataset final : public Dataset, public BadLineCounts {
 public:
  /// Checks the desc and every file (missing, folder, no name: one message for all) before anything is read.
  /// `feeds` makes desc.name, by default MultiSlotDataFeed; it is copied.
  static Result<std::unique_ptr<QueueDataset>> Create(const DataFeedDesc& desc, std::vector<std::string> files,
                                                      const DataFeedFactory& feeds, QueueDatasetOptions options);
  ~QueueDataset() override;

  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override;
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override;
  const SlotSchema& schema() const override;
  std::map<std::string, int64_t> BadLinesWithin(const ConsumedRanges& trained) const override;
  /// Within a pass of a worker that reads for itself: whether its next batch is to be waited for.
  bool is_paused() const;

 private:
  struct Impl;
  explicit QueueDataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
