#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <string_view>

namespace millrace {

/// A row of a grouped metric.
struct GroupedRow {
  uint64_t group = 0;
  float prediction = 0;
  /// Positive: weight of a row with label 1; negative: of a row with label 0. 0: label 0 with weight 1.
  float weight = 0;
};

/// The rows from which GAUC is computed: all, or, if there would be more than `most_rows`, those of half of the groups,
/// of a quarter, and so on.
///
/// Only the group id decides which groups stay. A group has all of its rows or none, so samples of threads and windows
/// merge exactly. 16 bytes per row; rows are never moved to grow. Add allocates when the sample grows. One thread.
class GroupSample {
 public:
  /// `most_rows` is at least 1.
  explicit GroupSample(size_t most_rows) : most_rows_(most_rows) {}

  void Add(const GroupedRow& row) {
    if (!Keeps(row.group)) return;
    rows_.push_back(row);
    if (rows_.size() > most_rows_) Thin();
  }
  void Merge(const GroupSample& other) { Merge(other, 0); }
  /// Merges the rows that `other` received since its StartWindow.
  void MergeWindow(const GroupSample& other) { Merge(other, other.window_); }
  /// Merges `other` and leaves it empty. Free while this sample is empty; otherwise moves row by row, so no row is
  /// stored twice.
  void Take(GroupSample& other);
  void StartWindow() { window_ = rows_.size(); }
  /// Moves the rows from before the last StartWindow to a new sample. Free if these are all rows.
  GroupSample TakeEarlierRows();
  /// Sorts rows by group and prediction, and starts a window. Sorts the rows added since the last call and merges them
  /// with the others, which temporarily needs 16 bytes per new row, except in the first call.
  void Sort();
  /// Removes all rows and restarts with all groups; keeps memory.
  void Clear();

  const std::deque<GroupedRow>& rows() const { return rows_; }
  /// How often groups were halved; 0: no row is missing.
  int halvings() const { return halvings_; }

  /// Writes the sample's bytes (docs/formats/checkpoint.md), row by row.
  void Write(std::ostream& out) const;
  /// Reads the bytes of Write from the front of `bytes` into this empty sample; false if they are malformed.
  bool TakeBytes(std::string_view* bytes);

 private:
  bool Keeps(uint64_t group) const;
  void Merge(const GroupSample& other, size_t first);
  std::deque<GroupedRow>::iterator At(size_t row) { return rows_.begin() + static_cast<std::ptrdiff_t>(row); }
  void HalveGroups();
  void Thin();

  size_t most_rows_;
  int halvings_ = 0;
  size_t window_ = 0;  ///< start of the current window in rows_
  size_t sorted_ = 0;  ///< number of sorted rows at the front, at most window_
  std::deque<GroupedRow> rows_;
};

/// AUC within each group, averaged with the weights of the groups' rows (Zhou et al. 2018). Groups of one class are
/// excluded; ties count half. NaN without a group of two classes. Sorts the sample first, then reads each row once.
double GroupedAuc(GroupSample& sample);

}  // namespace millrace
