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

/// Settings of a pass.
struct PassOptions {
  int64_t pass = 0;      ///< epoch number from 0; the shuffle depends on it and on the seed
  int workers = 1;       ///< number of sources, each read by one thread
  bool ordered = false;  ///< one worker sees file and line order (SERIAL), for any number of reading threads
  uint64_t seed = 1;
  /// Positions of this pass that an interrupted run already trained; they are skipped. Null: none. Copied.
  const ConsumedRanges* trained = nullptr;
  /// Bad lines by kind among those positions; they count toward the limits of bad_lines. Null: none. Copied.
  const std::map<std::string, int64_t>* bad_lines = nullptr;
};

/// Statistics of a pass or of a load into memory.
struct PassStats {
  int64_t files = 0;
  int64_t bytes = 0;  ///< parsed bytes, after pipe and decompression
  int64_t lines = 0;  ///< including bad and blank lines
  int64_t rows = 0;   ///< examples delivered
  int64_t bad_lines = 0;
  std::vector<std::string> first_bad_lines;  ///< messages of the first few bad lines, with positions
  std::string quarantine_path;               ///< where bad lines were appended; empty: nowhere
  /// Notable events by kind: "bad_count", "overflow", "non_finite", "blank_line", "zero_dropped", ...
  std::map<std::string, int64_t> counters;
  /// Seconds summed over threads, by stage: "pipe", "parse", "wait_full", ...
  std::map<std::string, double> stage_seconds;
  ValueNames names;
};

/// Adds the statistics of a part of a pass to `all`.
void AddPassStats(const PassStats& part, PassStats* all);

/// Lists what a pass, a load or the reading of one file excluded, one clause per kind with the count and the setting
/// responsible: "5 zeros of sparse slots (data_desc.zeros)". Does not include bad lines.
std::vector<std::string> LeftOut(const PassStats& read);
/// The same as one line: "left out: ..., ..."; empty if nothing was excluded.
std::string LeftOutLine(const PassStats& read);

/// "the times in column "day" are from "2026-11-01" to "2026-11-26"".
std::string ShownTimes(const SeenTimes& times);

/// The purpose for which a pass reads lines.
enum class Reads : uint8_t {
  kTraining,
  kModel,  ///< an evaluation or a prediction with a trained model
};

/// Warnings after a pass, keyed by subject so that a run logs each once. The warnings are:
/// - a column that no line named, with the nearest name found in the lines
/// - a column of words whose whole numbers some lines write as floats, or not as the training files do
/// - a column with strings that are not UTF-8
/// - a vocabulary without any word in the training lines
/// - a slot with clearly more untrained values, or rows without a value, than an earlier evaluation had (without one:
///   half of the values, unless the slot has a vocabulary)
/// Empty if lines were left unread.
std::map<std::string, std::string> ValueWarnings(const PassStats& read, Reads reads);

/// Returns kBadData for a pass over `files` that delivered no row, with what it read: "nothing to train on: no row came
/// out of 2 files from ads/part-0 on with 5 lines (2 bad; blank_line 3)", or that the pipe_command wrote nothing.
/// `what` is "train on" or "evaluate".
Status NothingTo(std::string_view what, const PassStats& read, const DataFeedDesc& desc,
                 const std::vector<std::string>& files);

/// Delivers batches to one worker. Used by one thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The next batch; null at the end of the pass. Blocks. Fails with kCancelled within 100 ms of a stop request, and
  /// with the first failure of any reader (for example kBadData, or kIo if a pipe_command fails) as soon as it is
  /// known.
  virtual Result<BatchPtr> Next(std::stop_token stop) = 0;
};

/// Examples from files, pass by pass. Its threads end with EndPass or with the object.
///
/// Call BeginPass, read each source() to its end or not, then call EndPass, all from one thread except for the sources.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Prepares the sources and starts readers. Fails with kInvalidConfig if rows must be loaded or the pass prepared
  /// first, kIo if the quarantine file cannot be written, and with the failure of a load or a shuffle it waits for.
  virtual Status BeginPass(const PassOptions& options) = 0;
  /// The source of worker 0 <= i < workers; valid until EndPass.
  virtual BatchSource& source(int worker) = 0;
  /// Stops readers and children, within a second if sources were not read to their end, and returns statistics. Fails
  /// with kInternal without BeginPass.
  virtual Result<PassStats> EndPass() = 0;
  /// File names by RowOrigin::file; constant between preparations of passes.
  virtual const std::vector<std::string>& files() const = 0;
  virtual const SlotSchema& schema() const = 0;
};

/// Optional interface of a dataset that meets bad lines during training.
class BadLineCounts {
 public:
  virtual ~BadLineCounts() = default;
  /// Bad lines by kind among the trained positions of the current or last pass. Any thread.
  virtual std::map<std::string, int64_t> BadLinesWithin(const ConsumedRanges& trained) const = 0;
};

/// Optional interface of a dataset whose passes have their own files.
class PassPreparation {
 public:
  virtual ~PassPreparation() = default;
  /// Prepares a pass for BeginPass and starts preparing the next one. Blocks while files are loaded. Fails with
  /// kCancelled after a stop request, which also ends background loading, kInternal for a pass that does not exist, and
  /// with the failures of creating and loading either dataset.
  virtual Status PreparePass(int64_t pass, std::stop_token stop) = 0;
  /// Rows of the prepared pass in memory; 0 if it streams.
  virtual int64_t RowsInMemory() const = 0;
};

/// Optional interface of a dataset that holds its rows in memory.
class InMemoryControl {
 public:
  virtual ~InMemoryControl() = default;
  /// Reads all files into memory. Fails with kAlreadyExists if rows are loaded or loading, kCancelled after a stop
  /// request, kBadData when the bad lines exceed their limits, kIo if a file or command fails. After a failure no rows
  /// are loaded.
  virtual Result<PassStats> LoadIntoMemory(std::stop_token stop) = 0;
  /// Starts LoadIntoMemory in the background; WaitPreloadDone joins it, and BeginPass also waits. Fails with
  /// kAlreadyExists if rows are loaded or loading.
  virtual Status PreloadIntoMemory(std::stop_token stop) = 0;
  /// Returns what LoadIntoMemory would. Fails with kInvalidConfig without PreloadIntoMemory.
  virtual Result<PassStats> WaitPreloadDone() = 0;
  /// Permutes the rows by `seed`, identically on every machine and for any number of threads. Waits for a preload and
  /// fails as it does; kInvalidConfig if nothing is loaded.
  virtual Status LocalShuffle(uint64_t seed) = 0;
  /// Frees every row; loading again is allowed.
  virtual void ReleaseMemory() = 0;
  /// Whether rows are loaded.
  virtual bool IsLoaded() const = 0;
  /// Number of loaded rows.
  virtual int64_t MemoryDataSize() const = 0;
};

}  // namespace millrace
