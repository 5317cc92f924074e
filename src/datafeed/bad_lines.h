#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/file.h"
#include "core/status.h"

namespace millrace {

class BadLinePolicy;

/// The file to which QUARANTINE writes bad lines: the policy's, or bad_lines.txt in `output_dir`; empty if neither is
/// set.
std::string QuarantinePath(const BadLinePolicy& policy, const std::string& output_dir);
/// The quarantine file of a rank: `path` for rank 0, otherwise a file in the same folder: "bad_lines.txt" becomes
/// "bad_lines.rank-1.txt" for rank 1.
std::string QuarantineOfRank(const std::string& path, int rank);
/// Returns kBadData for a pass with more bad lines than `limit` of data_desc.bad_lines allows ("max_lines: 3"). `lines`
/// describes the lines read so far ("first 20 lines"), `first` has the messages of the first few bad ones.
Status TooManyBadLines(int64_t bad, const std::string& lines, std::string_view limit,
                       std::span<const std::string> first);

/// Handles unparsable lines for all threads of a pass: fail, skip within a budget, or skip and write to a quarantine
/// file. The file contains each line once, and no line that another rank's file contains. Thread-safe. Report takes a
/// lock; good lines cost one AddLines per block.
class BadLines {
 public:
  /// With QUARANTINE, creates the file at QuarantinePath(policy, output_dir). Fails with kInvalidConfig for an invalid
  /// limit, for QUARANTINE without a path, and if the file is one of `inputs`; a stop request ends that check early.
  /// Fails with kIo if the file cannot be written.
  static Result<std::unique_ptr<BadLines>> Create(const BadLinePolicy& policy, const std::string& output_dir,
                                                  const std::vector<std::string>& inputs, const std::stop_token& stop);

  /// Handles an unparsable line. `message` starts with "file:line:column: slot ..."; `kind` is a counter's name like
  /// "bad_count". Returns Ok to skip the line. A failure ends the pass: kBadData if the policy is FAIL or the budget is
  /// exceeded, kIo if the quarantine file cannot be written.
  Status Report(std::string_view kind, std::string_view message, std::string_view line);

  /// Records a line with NaN or infinite values, which are kept; the first one of the pass is logged immediately.
  /// `describe()` returns its position, `has_columns()` whether values are strings of named columns; both are called
  /// only for that line.
  template <class Describe, class HasColumns>
  void SawNonFinite(const Describe& describe, const HasColumns& has_columns) {
    if (!saw_non_finite_.exchange(true, std::memory_order_relaxed)) ShowNonFinite(describe(), has_columns());
  }

  /// Adds the bad lines that an interrupted run counted among `lines` lines of this pass; they count toward the budget.
  /// Call it before the first Report.
  void CountEarlier(const std::map<std::string, int64_t>& by_kind, int64_t lines);

  /// Counts lines read, including good ones.
  void AddLines(int64_t lines) { lines_.fetch_add(lines, std::memory_order_relaxed); }
  /// Fails with kBadData if the fraction of bad lines exceeds the budget. Call it at a bad line and at the end, but not
  /// at the end of a block, which depends on arrival times.
  Status CheckShare() const;

  int64_t bad_lines() const { return bad_.load(std::memory_order_relaxed); }
  std::map<std::string, int64_t> counts_by_kind() const;
  /// Messages of the first few bad lines, with positions.
  std::vector<std::string> first_lines() const;
  /// The quarantine file; empty: none.
  const std::string& quarantine_path() const { return quarantine_path_; }

 private:
  BadLines() = default;
  /// Loads the lines in the file and truncates a record that a killed run did not finish.
  Status TakeQuarantined();
  /// Loads lines that other datasets have appended since, for example an evaluation of training rows. Requires the
  /// file's lock.
  void TakeNew();
  /// Loads the lines in the files of other ranks.
  Status TakeOfOtherRanks();
  /// Loads the complete lines of `text`; returns the incomplete rest.
  std::string_view Remember(std::string_view text);
  Status OverBudget(std::string_view limit) const;
  static void ShowNonFinite(const std::string& place, bool has_columns);

  int action_ = 0;
  int64_t max_lines_ = 0;
  double max_fraction_ = 0;
  std::string quarantine_path_;
  FileDescriptor quarantine_;
  std::unordered_set<uint64_t> quarantined_;  ///< hashes of the lines in the file
  int64_t remembered_ = 0;                    ///< bytes of the file already loaded
  std::atomic<int64_t> bad_{0};
  std::atomic<int64_t> lines_{0};
  std::atomic<bool> saw_non_finite_{false};
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> by_kind_;
  std::vector<std::string> first_;
};

}  // namespace millrace
