#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <string_view>

namespace millrace {

/// What a grouped metric has to know of a row.
struct GroupedRow {
  uint64_t group = 0;
  float prediction = 0;
  /// Above 0: how much a row of label 1 counts; below: one of label 0. 0: one of label 0 that counts once.
  float weight = 0;
};

/// The rows that GAUC is computed from: all of them, or, when there would be more than `most_rows`, those of half of
/// the groups, of a quarter and so on.
///
/// Which groups stay is decided by their ids alone: a group has all of its rows or none, and samples of threads and
/// windows merge exactly. 16 bytes a row, which are never moved to make room; Add allocates when the sample grows. One
/// thread.
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
  /// Merges the rows that came to `other` since its StartWindow.
  void MergeWindow(const GroupSample& other) { Merge(other, other.window_); }
  /// Merges `other` and leaves it empty. Costs nothing while this is empty; otherwise rows go one after the other, so
  /// that none is there twice.
  void Take(GroupSample& other);
  void StartWindow() { window_ = rows_.size(); }
  /// Moves the rows that came before the last StartWindow to a sample of their own. Costs nothing when these are all.
  GroupSample TakeEarlierRows();
  /// Puts the rows in the order of group and prediction, and starts a window. Sorts the rows that came since the last
  /// call and merges them with the others: 16 more bytes for each new row meanwhile, but in the first call.
  void Sort();
  /// Forgets rows and starts with all groups again; memory is kept.
  void Clear();

  const std::deque<GroupedRow>& rows() const { return rows_; }
  /// Groups were halved so many times; 0: no row is missing.
  int halvings() const { return halvings_; }

  /// Writes the sample's bytes (docs/formats/checkpoint.md), a row at a time.
  void Write(std::ostream& out) const;
  /// Takes what Write wrote from the front of `bytes` into this empty sample; false when they are not such.
  bool TakeBytes(std::string_view* bytes);

 private:
  bool Keeps(uint64_t group) const;
  void Merge(const GroupSample& other, size_t first);
  std::deque<GroupedRow>::iterator At(size_t row) { return rows_.begin() + static_cast<std::ptrdiff_t>(row); }
  void HalveGroups();
  void Thin();

  size_t most_rows_;
  int halvings_ = 0;
  size_t window_ = 0;  ///< rows before it are of earlier windows
  size_t sorted_ = 0;  ///< rows before it are in order; not behind window_
  std::deque<GroupedRow> rows_;
};

/// AUC within each group, averaged with the weights of the groups' rows (Zhou et al. 2018); groups of one class are
/// left out, ties count half. NaN without a group of two classes. Sorts the sample first, then reads each row once.
double GroupedAuc(GroupSample& sample);

}  // namespace millrace
