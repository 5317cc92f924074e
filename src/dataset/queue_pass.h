#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/channel.h"
#include "core/file_queue.h"
#include "core/span_log.h"
#include "datafeed/bad_lines.h"
#include "datafeed/data_feed.h"
#include "datafeed/line_block_queue.h"
#include "dataset/bad_line_places.h"
#include "dataset/dataset.h"
#include "dataset/line_draw.h"
#include "dataset/row_filter.h"

namespace millrace {

/// Settings of a QueuePass.
struct QueuePassOptions {
  /// Threads that read ahead of the workers. 0: the single worker reads itself, and gets an incomplete batch when the
  /// input pauses or before a failure is returned.
  int readers = 1;
  int workers = 1;
  int batch_size = 1;
  size_t prefetch_batches = 2;
  int retries = 0;
  bool drop_last = false;
  LineCut cut = {};                   ///< of the feeds' class
  SpanLog* spans = nullptr;           ///< of a trace; null: none
  std::string traced_as = {};         ///< LineBlockQueueOptions::traced_as
  FileQueue* shared_files = nullptr;  ///< LineBlockQueueOptions::shared
  LabelThinning thinning = {};        ///< not for a worker that reads itself
  LineShare held = {};
};

/// One pass of a QueueDataset: its readers, their channel to the workers, and their statistics.
///
/// Readers start with the object and are stopped and joined with it. The first failure of a reader closes the channel
/// with that failure and stops the others.
class QueuePass {
 public:
  /// What `opener`, `files`, `pool` and `places` refer to must outlive the pass. `feeds` holds one feed per reader.
  QueuePass(const QueuePassOptions& options, const InputOpener& opener, const std::vector<std::string>& files,
            BatchPool& pool, std::vector<std::unique_ptr<DataFeed>> feeds, std::unique_ptr<BadLines> bad_lines,
            ConsumedRanges trained, BadLinePlaces& places);
  ~QueuePass();

  BatchSource& source(int worker) { return sources_[static_cast<size_t>(worker)]; }
  /// For a worker that reads itself: whether the next batch would block.
  bool is_paused() const;
  /// Stops and joins the readers and returns statistics.
  PassStats Finish();

 private:
  class Source final : public BatchSource {
   public:
    explicit Source(QueuePass& pass) : pass_(&pass) {}
    Result<BatchPtr> Next(std::stop_token stop) override;
    double wait_seconds() const { return wait_seconds_; }

   private:
    QueuePass* pass_;
    double wait_seconds_ = 0;
  };
  /// State of a thread: lines, feed, current batch, counts.
  struct Reader;

  /// Ends the pass with a reader's failure.
  void EndWith(Status status);
  Status ReadAll(Reader& reader, const std::stop_token& stop);
  /// ReadAll without a thread, until the channel has a batch or is closed.
  Status ReadForCaller(const std::stop_token& stop);
  /// The next full batch; null at the end of all blocks, even if the reader has an incomplete one.
  Result<BatchPtr> ReadBatch(Reader& reader, const std::stop_token& stop);
  /// ReadBatch before thinning.
  Result<BatchPtr> ReadWholeBatch(Reader& reader, const std::stop_token& stop);
  /// Parses lines of the reader's block, to its end or until the batch is full.
  Status ParseLines(Reader& reader);
  Status Emit(Reader& reader, BatchPtr batch, const std::stop_token& stop);
  /// Counts a bad line before reporting it, so the report includes everything read so far.
  Status NoteBadLine(Reader& reader, uint64_t position, const LineError& error);
  /// The last reader combines the others' incomplete batches into as few as possible and ends the pass.
  Status EndReader(Reader& reader, const std::stop_token& stop);

  const QueuePassOptions options_;
  BatchPool* pool_;
  const ConsumedRanges trained_;
  const std::unique_ptr<BadLines> bad_lines_;
  BadLinePlaces* places_;
  LineBlockQueue blocks_;
  Channel<BatchPtr> channel_;
  std::vector<Source> sources_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::mutex remainder_mutex_;
  std::vector<BatchPtr> remainders_;
  int readers_at_work_;
  // Written by the last reader.
  int64_t rows_dropped_ = 0;  ///< rows of an incomplete last batch that was dropped
  bool is_whole_ = false;     ///< the pass has reached its end
  std::stop_source stop_;
  std::vector<std::jthread> threads_;
};

}  // namespace millrace
