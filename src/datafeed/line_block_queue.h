#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/file_queue.h"
#include "core/line_blocks.h"
#include "core/span_log.h"
#include "core/status.h"
#include "datafeed/input_opener.h"
#include "datafeed/line_cut.h"
#include "datafeed/line_error.h"

namespace millrace {

/// What a LineBlockQueue met so far.
struct LineBlockQueueStats {
  int64_t files = 0;        ///< read to their end
  int64_t empty_files = 0;  ///< of them: without a line behind a header
  int64_t retries = 0;
  int64_t bytes = 0;
  int64_t lines = 0;
  /// Time spent on getting bytes, summed over threads, by InputStage.
  std::array<double, kInputStages> stage_seconds{};
};

struct LineBlockQueueOptions {
  int lanes = 1;
  int retries = 0;              ///< a file
  SpanLog* spans = nullptr;     ///< takes what each thread waited for, and how long each file took; null: no trace
  std::string traced_as = {};   ///< what names of lines of the trace begin with
  bool as_they_come = false;    ///< lines wait for no others, be they few
  FileQueue* shared = nullptr;  ///< says which file is next where others read the list, too; null: nobody does
};

/// Turns a list of files into blocks of whole lines or records, once, for any number of threads.
///
/// The files are read in list order, those that are shared as far as this queue gets them, up to `lanes` at once; a
/// thread prefers its own lane and helps with the others when no file is left, so one large file keeps every thread
/// busy. With one lane, blocks come in file and line order. A command that fails is run again, up to `retries` times a
/// file, as long as no block of its file was given out: for outputs of up to a block (1 MiB) that is always, since the
/// first block of a file that may be tried again waits to be full, however slow the command. Thread-safe; a block costs
/// one uncontended lock.
class LineBlockQueue {
 public:
  /// `opener`, `files` and what `cut` and `options` refer to must outlive the queue.
  LineBlockQueue(const InputOpener& opener, const std::vector<std::string>& files, const LineCut& cut,
                 const LineBlockQueueOptions& options);
  ~LineBlockQueue();

  /// Fills `block` (its buffer is reused) for the thread that calls itself number `lane`; false when all is read.
  /// Failures name the file: "part-3: command exited with status 3 after 512 rows". kCancelled at a stop request.
  Result<bool> Next(int lane, LineBlock& block, const std::stop_token& stop);

  /// What is wrong with a line that came from here: "part-3:17:5: slot ...", and of a record "part-3: record 17: slot
  /// ...". Rows in memory count from 0, as those of data frames do: "data: row 16: slot ...". Says so when they count
  /// in what a command wrote.
  Status DescribeLine(const LineError& error, uint32_t file, uint64_t line) const;
  /// Where a line stands: "part-3:17", or "part-3: record 17".
  std::string DescribeLine(uint32_t file, uint64_t line) const;
  /// Where in a line a byte stands, from 1: "part-3:17:5".
  std::string DescribeByte(uint32_t file, uint64_t line, size_t byte) const;

  LineBlockQueueStats stats() const;
  /// Of a queue with one lane whose lines come as they come: whether behind its last block nothing was at hand.
  bool is_paused() const;

 private:
  struct Lane;
  Result<bool> NextOfLane(Lane& lane, LineBlock& block, const std::stop_token& stop) const;
  /// NextOfLane, noted in the trace.
  Result<bool> TracedNext(int reader, size_t lane, LineBlock& block, const std::stop_token& stop) const;
  /// False when no file is left.
  Result<bool> TakeFile(Lane& lane, const std::stop_token& stop) const;
  Status OpenFileOf(Lane& lane) const;
  /// With a single lane: starts the next file's command while this one's output is read, so that nobody waits for it.
  Status OpenAhead(Lane& lane, const std::stop_token& stop) const;

  const InputOpener* opener_;
  const std::vector<std::string>* files_;
  LineCut cut_;
  const LineBlockQueueOptions options_;
  LocalFileQueue own_;
  FileQueue* file_queue_;  ///< own_, or the one that is shared
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace millrace
