#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/file_queue.h"
#include "core/span_log.h"
#include "datafeed/data_feed.h"
#include "dataset/dataset.h"
#include "dataset/label_thinning.h"
#include "dataset/line_draw.h"

namespace millrace {

struct QueueDatasetOptions {
  int threads = 1;             ///< reading and parsing threads if desc.thread_num is not set
  int prefetch_batches = 0;    ///< DatasetDesc.prefetch_batches: batches waiting for workers; 0: two per worker
  std::string output_dir;      ///< folder of QUARANTINE's bad_lines.txt if the policy names no file
  bool reads_ahead = true;     ///< false: the single worker reads itself (QueuePassOptions::readers)
  SpanLog* spans = nullptr;    ///< records the readers' spans for a trace; null: none. Must outlive the dataset
  std::string traced_as = {};  ///< prefix of the readers' names in a trace
  std::stop_token stop = {};   ///< cancels Create's check of many files (kCancelled)
  /// For datasets that share one file list: creates, for each pass, the queue that assigns each file to one of them.
  /// Empty: this dataset reads all files.
  FileQueueOfPass shared_files = {};
  ThinnedLabel thinned = {};
  LineShare held = {};
};

/// Streams files: reader threads parse blocks of lines into batches, and one channel passes them to the workers.
///
/// The number of readers does not depend on the number of files; every pass reads the files again with new commands.
/// Batches may cross file boundaries; at most one batch of a pass is not full (none with drop_last). With `ordered`, or
/// with one reader, rows come in file and line order. Memory is bounded by readers + workers + prefetch_batches batches
/// plus a block per reader. The first failure of a reader ends the pass for all within a second, including children.
class QueueDataset final : public Dataset, public BadLineCounts {
 public:
  /// Checks the desc and every file before reading anything. `feeds` creates desc.name, by default MultiSlotDataFeed;
  /// it is copied. Fails with kInvalidConfig for an invalid setting, kIo if the quarantine file cannot be written, and
  /// with InputOpener::Create's errors (all bad files in one message) and the feed's.
  static Result<std::unique_ptr<QueueDataset>> Create(const DataFeedDesc& desc, std::vector<std::string> files,
                                                      const DataFeedFactory& feeds, QueueDatasetOptions options);
  ~QueueDataset() override;

  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override;
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override;
  const SlotSchema& schema() const override;
  std::map<std::string, int64_t> BadLinesWithin(const ConsumedRanges& trained) const override;
  /// During a pass whose worker reads itself: whether the next batch would block.
  bool is_paused() const;

 private:
  struct Impl;
  explicit QueueDataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
