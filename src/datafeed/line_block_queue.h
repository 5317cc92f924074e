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

/// Statistics of a LineBlockQueue so far.
struct LineBlockQueueStats {
  int64_t files = 0;        ///< read to their end
  int64_t empty_files = 0;  ///< of these, files without a line after the header
  int64_t retries = 0;
  int64_t bytes = 0;
  int64_t lines = 0;
  /// Seconds waiting for bytes, summed over threads, by InputStage.
  std::array<double, kInputStages> stage_seconds{};
};

struct LineBlockQueueOptions {
  int lanes = 1;
  int retries = 0;              ///< per file
  SpanLog* spans = nullptr;     ///< records each thread's waits and each file's duration; null: no trace
  std::string traced_as = {};   ///< prefix of names in the trace
  bool as_they_come = false;    ///< return available lines without waiting for a full block
  FileQueue* shared = nullptr;  ///< assigns files if others read the same list; null: this queue reads all
};

/// Splits a list of files into blocks of whole lines or records, once, for any number of threads.
///
/// Files are read in list order (of a shared list, the files assigned to this queue), up to `lanes` concurrently. A
/// thread prefers its own lane and helps other lanes when no file is left, so one large file keeps every thread busy.
/// With one lane, blocks are in file and line order. A failed command is retried up to `retries` times per file while
/// no block of its file was returned. To allow this, the first block of a retryable file waits until it is full (1
/// MiB), so smaller outputs can always be retried. Thread-safe; a block costs one uncontended lock.
class LineBlockQueue {
 public:
  /// `opener`, `files` and the references in `cut` and `options` must outlive the queue.
  LineBlockQueue(const InputOpener& opener, const std::vector<std::string>& files, const LineCut& cut,
                 const LineBlockQueueOptions& options);
  ~LineBlockQueue();

  const std::vector<std::string>& files() const { return *files_; }
  /// Fills `block` (reusing its buffer) for thread number `lane`; false at the end. Fails like InputOpener::Open, with
  /// kIo if reading or a command fails, kUnavailable if a command times out, kBadData for a damaged file or a line that
  /// is too long, kCancelled after a stop request. Messages name the file: "part-3: command exited with status 3 after
  /// 512 rows".
  Result<bool> Next(int lane, LineBlock& block, const std::stop_token& stop);

  /// Returns kBadData for a line of this queue: "part-3:17:5: slot ...", for a record "part-3: record 17: slot ...".
  /// Rows of data frames count from 0: "data: row 16: slot ...". States if the line is counted in a command's output.
  Status DescribeLine(const LineError& error, uint32_t file, uint64_t line) const;
  /// The position of a line: "part-3:17", or "part-3: record 17".
  std::string DescribeLine(uint32_t file, uint64_t line) const;
  /// The position of a byte in a line, from 1: "part-3:17:5".
  std::string DescribeByte(uint32_t file, uint64_t line, size_t byte) const;

  LineBlockQueueStats stats() const;
  /// For a queue with one lane and as_they_come: whether no more input was available after the last block.
  bool is_paused() const;

 private:
  struct Lane;
  Result<bool> NextOfLane(Lane& lane, LineBlock& block, const std::stop_token& stop) const;
  /// NextOfLane with a trace entry.
  Result<bool> TracedNext(int reader, size_t lane, LineBlock& block, const std::stop_token& stop) const;
  /// False if no file is left.
  Result<bool> TakeFile(Lane& lane, const std::stop_token& stop) const;
  Status OpenFileOf(Lane& lane) const;
  /// With a single lane: starts the command of the next file early, to hide its startup.
  Status OpenAhead(Lane& lane, const std::stop_token& stop) const;

  const InputOpener* opener_;
  const std::vector<std::string>* files_;
  LineCut cut_;
  const LineBlockQueueOptions options_;
  LocalFileQueue own_;
  FileQueue* file_queue_;  ///< own_ or the shared queue
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace millrace
