#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "batch/batch_pool.h"
#include "batch/consumed_ranges.h"
#include "core/status.h"
#include "datafeed/value_names.h"

namespace millrace {

class DataFeedDesc;

/// What a pass is to do.
struct PassOptions {
  int64_t pass = 0;      ///< epoch number from 0; together with the seed it fixes the shuffle
  int workers = 1;       ///< sources that will be read, each by one thread
  bool ordered = false;  ///< one worker sees file order and line order (SERIAL), however many threads read
  uint64_t seed = 1;
  /// Positions that an interrupted run trained in this pass already, and that are skipped. Null: none. Copied.
  const ConsumedRanges* trained = nullptr;
  /// Bad lines by kind among those positions; the limits of bad_lines count them too. Null: none. Copied.
  const std::map<std::string, int64_t>* bad_lines = nullptr;
};

/// What a pass (or a load into memory) met.
struct PassStats {
  int64_t files = 0;
  int64_t bytes = 0;  ///< that were parsed, after pipe and decompression
  int64_t lines = 0;  ///< with bad and blank ones
  int64_t rows = 0;   ///< examples handed on
  int64_t bad_lines = 0;
  std::vector<std::string> first_bad_lines;  ///< what was wrong with the first few, with their places
  std::string quarantine_path;               ///< where bad lines were appended; empty: nowhere
  /// Things worth a look, by kind: "bad_count", "overflow", "non_finite", "blank_line", "zero_dropped", ...
  std::map<std::string, int64_t> counters;
  /// Seconds summed over threads, by stage: "pipe", "parse", "wait_full", ...
  std::map<std::string, double> stage_seconds;
  ValueNames names;
};

/// Adds what a part of a pass met to what others did.
void AddPassStats(const PassStats& part, PassStats* all);

/// What a pass (or a load, or a reading of one file) left out of the rows it was given, a clause each with its number
/// and the setting that asks for it: "5 zeros of sparse slots (data_desc.zeros)". Bad lines are not among them.
std::vector<std::string> LeftOut(const PassStats& read);
/// The same as a line: "left out: ..., ..."; empty when nothing was.
std::string LeftOutLine(const PassStats& read);

/// "the times in column "day" are from "2026-11-01" to "2026-11-26"".
std::string ShownTimes(const SeenTimes& times);

/// Who reads the lines of a pass.
enum class Reads : uint8_t {
  kTraining,
  kModel,  ///< an evaluation or a prediction, by what was trained
};

/// What to warn of behind a pass, by what a run says once: the column, and of what. One is of a column that no line has
/// named, with the nearest name that lines have. Others are of a column of words some of whose whole numbers lines
/// write as floats, or otherwise than the files of the training begin, or whose texts are not UTF-8, or of a vocabulary
/// of which no line that trains has a word. Others are of a slot: of its values clearly more were never trained, or of
/// its rows have none, than of an evaluation before (where there is none, half of the values, unless the slot has a
/// vocabulary). None where lines were left unread.
std::map<std::string, std::string> ValueWarnings(const PassStats& read, Reads reads);

/// kBadData that says what a pass over `files` that handed on no row had read: "nothing to train on: no
/// row came out of 2 files from ads/part-0 on with 5 lines (2 bad; blank_line 3)", or that it was the pipe_command that
/// wrote nothing. `what` is "train on" or "evaluate".
Status NothingTo(std::string_view what, const PassStats& read, const DataFeedDesc& desc,
                 const std::vector<std::string>& files);

/// Hands batches to one worker. One thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The next batch; null at the end of the pass. Blocks; returns kCancelled within 100 ms of a stop request, and the
  /// first failure of any reader (bad data, a failed pipe_command) as soon as it is known.
  virtual Result<BatchPtr> Next(std::stop_token stop) = 0;
};

/// Examples from files, pass by pass. Threads that it starts end with EndPass or with the object.
///
/// BeginPass, then each source() to its end (or not), then EndPass; from one thread but for the sources.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Makes the sources ready and starts readers.
  virtual Status BeginPass(const PassOptions& options) = 0;
  /// The source of worker 0 <= i < workers; valid until EndPass.
  virtual BatchSource& source(int worker) = 0;
  /// Stops readers and children (within a second when sources were not read to their end), says what the pass met.
  virtual Result<PassStats> EndPass() = 0;
  /// File names by RowOrigin::file; constant from the preparation of a pass to the next one's.
  virtual const std::vector<std::string>& files() const = 0;
  virtual const SlotSchema& schema() const = 0;
};

/// The further ability of a dataset that meets bad lines while it is trained on.
class BadLineCounts {
 public:
  virtual ~BadLineCounts() = default;
  /// Bad lines by kind among the trained positions of the pass in hand, or of the last one. Any thread.
  virtual std::map<std::string, int64_t> BadLinesWithin(const ConsumedRanges& trained) const = 0;
};

/// The further ability of a dataset whose passes have files of their own.
class PassPreparation {
 public:
  virtual ~PassPreparation() = default;
  /// Makes a pass ready for BeginPass, and begins to make the one behind it ready. Waits for files to be loaded;
  /// kCancelled at a stop request, which also ends what goes on in the background.
  virtual Status PreparePass(int64_t pass, std::stop_token stop) = 0;
  /// Rows that the prepared pass has in memory; 0 of one that streams.
  virtual int64_t RowsInMemory() const = 0;
};

/// The further abilities of an InMemoryDataset.
class InMemoryControl {
 public:
  virtual ~InMemoryControl() = default;
  /// Reads all files into memory. A second call without Release is kAlreadyExists.
  virtual Result<PassStats> LoadIntoMemory(std::stop_token stop) = 0;
  /// Starts LoadIntoMemory in the background; WaitPreloadDone joins it. BeginPass waits by itself.
  virtual Status PreloadIntoMemory(std::stop_token stop) = 0;
  virtual Result<PassStats> WaitPreloadDone() = 0;
  /// Permutes the rows by `seed`, the same way on every machine and for any number of threads.
  virtual Status LocalShuffle(uint64_t seed) = 0;
  /// Frees every row; loading again is allowed.
  virtual void ReleaseMemory() = 0;
  /// Whether rows are there for passes.
  virtual bool IsLoaded() const = 0;
  /// Rows that are there for passes.
  virtual int64_t MemoryDataSize() const = 0;
};

}  // namespace millrace
