#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// What a grouped metric has to know of a row.
struct GroupedRow {
  uint64_t group = 0;
  float prediction = 0;
  float label = 0;
};

/// The rows that GAUC is computed from: all of them, or, when there would be more than `most_rows`, those of half of
/// the groups, of a quarter and so on.
///
/// Which groups stay is decided by their ids alone: a group has all of its rows or none, and samples of threads and
/// windows merge exactly. 16 bytes a row; Add allocates when the sample grows. One thread.
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
  void StartWindow() { window_ = rows_.size(); }
  /// Forgets rows and starts with all groups again; memory is kept.
  void Clear();

  std::span<const GroupedRow> rows() const { return rows_; }
  /// Groups were halved so many times; 0: no row is missing.
  int halvings() const { return halvings_; }

  /// Appends the sample's bytes (docs/formats/checkpoint.md).
  void AppendBytes(std::string* bytes) const;
  /// Takes AppendBytes' bytes from the front of `bytes` into this empty sample; false when they are not such.
  bool TakeBytes(std::string_view* bytes);

 private:
  bool Keeps(uint64_t group) const;
  void Merge(const GroupSample& other, size_t first);
  void HalveGroups();
  void Thin();

  size_t most_rows_;
  int halvings_ = 0;
  size_t window_ = 0;  ///< rows before it are of earlier windows
  std::vector<GroupedRow> rows_;
};

/// AUC within each group, averaged with the groups' rows as weights (Zhou et al. 2018); groups of one class are left
/// out, ties count half. NaN without a group of two classes. Sorts a copy of the rows.
double GroupedAuc(const GroupSample& sample);

}  // namespace millrace
