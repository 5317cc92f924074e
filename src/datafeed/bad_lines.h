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

/// The file that QUARANTINE writes bad lines to: the policy's, or bad_lines.txt in `output_dir`; empty where neither is
/// given.
std::string QuarantinePath(const BadLinePolicy& policy, const std::string& output_dir);
/// The file that a rank writes bad lines to: rank 0 to `path`, others beside it: "bad_lines.txt" is
/// "bad_lines.rank-1.txt" of rank 1.
std::string QuarantineOfRank(const std::string& path, int rank);
/// kBadData: what ends a pass with more bad lines than `limit` of data_desc.bad_lines allows ("max_lines: 3"). `lines`
/// is of how many ("first 20 lines"), `first` what was wrong with the first few.
Status TooManyBadLines(int64_t bad, const std::string& lines, std::string_view limit,
                       std::span<const std::string> first);

/// Decides what becomes of lines that do not parse, for all threads of a pass: fail, skip within a budget, or skip and
/// write them to a file, in which each stands once, however often it is met; what stands in a file of another rank
/// stays there alone. Thread-safe; Report takes a lock, good lines cost nothing but AddLines once a block.
class BadLines {
 public:
  /// With QUARANTINE the file at QuarantinePath(policy, output_dir) is made here.
  /// kInvalidConfig when it is one of `inputs`, whose bad lines would be appended to what is read; a stop request ends
  /// that look, since nothing will be read.
  static Result<std::unique_ptr<BadLines>> Create(const BadLinePolicy& policy, const std::string& output_dir,
                                                  const std::vector<std::string>& inputs, const std::stop_token& stop);

  /// A line that does not parse. `message` begins with "file:line:column: slot ...", `kind` is a counter's name like
  /// "bad_count". Ok: leave the line out and go on. A failure ends the pass.
  Status Report(std::string_view kind, std::string_view message, std::string_view line);

  /// A line with NaN or infinite values, which are taken as they are: the first of the pass is shown at once.
  /// `describe()` gives its place, `has_columns()` whether values are texts of columns with names; called only for it.
  template <class Describe, class HasColumns>
  void SawNonFinite(const Describe& describe, const HasColumns& has_columns) {
    if (!saw_non_finite_.exchange(true, std::memory_order_relaxed)) ShowNonFinite(describe(), has_columns());
  }

  /// What an interrupted run met in this pass, of `lines` lines: it counts to the budget. Before the first Report.
  void CountEarlier(const std::map<std::string, int64_t>& by_kind, int64_t lines);

  /// Lines that were looked at, good ones included.
  void AddLines(int64_t lines) { lines_.fetch_add(lines, std::memory_order_relaxed); }
  /// Fails when a larger share than the budget is bad. To be asked at a bad line and at the end of all, not where a
  /// block of lines ends, which depends on how fast they come.
  Status CheckShare() const;

  int64_t bad_lines() const { return bad_.load(std::memory_order_relaxed); }
  std::map<std::string, int64_t> counts_by_kind() const;
  /// What was wrong with the first few, with their places.
  std::vector<std::string> first_lines() const;
  /// The file that they are written to; empty: none is.
  const std::string& quarantine_path() const { return quarantine_path_; }

 private:
  BadLines() = default;
  /// Remembers what the file holds, and takes away a record that a killed run did not finish.
  Status TakeQuarantined();
  /// Remembers what other datasets have written since, an evaluation of rows of the training files for one. To be
  /// called under the file's lock.
  void TakeNew();
  /// Remembers what the files of other ranks hold.
  Status TakeOfOtherRanks();
  /// Remembers the whole lines of `text`; returns what is behind them.
  std::string_view Remember(std::string_view text);
  Status OverBudget(std::string_view limit) const;
  static void ShowNonFinite(const std::string& place, bool has_columns);

  int action_ = 0;
  int64_t max_lines_ = 0;
  double max_fraction_ = 0;
  std::string quarantine_path_;
  FileDescriptor quarantine_;
  std::unordered_set<uint64_t> quarantined_;  ///< hashes of what stands in the file
  int64_t remembered_ = 0;                    ///< bytes of it whose lines are there
  std::atomic<int64_t> bad_{0};
  std::atomic<int64_t> lines_{0};
  std::atomic<bool> saw_non_finite_{false};
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> by_kind_;
  std::vector<std::string> first_;
};

}  // namespace millrace
