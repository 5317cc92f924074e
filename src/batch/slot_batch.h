#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_schema.h"
#include "core/uninitialized_vector.h"

namespace millrace {

/// Says where a row came from: file number in the file list and line number (from 1), 0 when unknown.
struct RowOrigin {
  uint32_t file = 0;
  uint64_t line = 0;
};

/// Lines [first, last] of a file of the list, as messages name them: "part-3:17", "part-3:17-20"; of a frame in memory,
/// "frame:data", whose rows count from 0: "data: row 16", "data: rows 16-19".
std::string DescribeLines(std::string_view file, uint64_t first, uint64_t last);

/// A run of consecutive positions (ConsumedRanges) that a batch holds: lines [begin, end) of file `source`, both from
/// 0, or rows [begin, end) of an in-memory dataset's order with source 0. A checkpoint records trained spans.
struct BatchSpan {
  uint32_t source = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The values of one slot for all rows of a batch, end to end. Row i of a sparse slot is
/// [offsets[i], offsets[i + 1]); a dense slot has no offsets and `width` values a row.
///
///     rows   a: [7]  b: []  c: [5, 9]      ids = 7 5 9      offsets = 0 1 1 3
struct SlotColumn {
  UninitializedVector<uint64_t> ids;      ///< used when the slot is kUint64
  UninitializedVector<float> floats;      ///< used when the slot is kFloat
  UninitializedVector<uint32_t> offsets;  ///< rows + 1 entries for sparse slots; empty for dense ones
};

/// Examples side by side, one column a slot.
///
/// A feed fills it, then hands it on; afterwards nobody changes it. Buffers keep their capacity when the batch is
/// cleared, so a recycled batch allocates nothing once it has seen the largest batch. One thread at a time.
class SlotBatch {
 public:
  explicit SlotBatch(const SlotSchema& schema);

  int rows() const { return rows_; }
  std::span<const uint64_t> ids(SlotId slot) const { return columns_[Index(slot)].ids; }
  std::span<const float> floats(SlotId slot) const { return columns_[Index(slot)].floats; }
  /// rows() + 1 offsets; empty for dense slots.
  std::span<const uint32_t> offsets(SlotId slot) const { return columns_[Index(slot)].offsets; }
  const SlotSchema& schema() const { return *schema_; }

  /// Names of examples (`parse_ins_id`) and their texts (`parse_content`); empty when not asked for.
  std::span<const std::string> ins_ids() const { return {ins_ids_.data(), ins_ids_.empty() ? 0 : Index(rows_)}; }
  std::span<const std::string> contents() const { return {contents_.data(), contents_.empty() ? 0 : Index(rows_)}; }

  /// One entry a row; empty when the feed keeps none.
  std::span<const RowOrigin> origins() const { return origins_; }
  std::span<const BatchSpan> spans() const { return spans_; }

  // Filling, by feeds alone.
  void Clear();
  SlotColumn& column(SlotId slot) { return columns_[Index(slot)]; }
  void set_rows(int rows) { rows_ = rows; }
  /// Grown, never shrunk, so that the strings keep their capacity; the first rows() entries count.
  std::vector<std::string>& mutable_ins_ids() { return ins_ids_; }
  std::vector<std::string>& mutable_contents() { return contents_; }
  std::vector<RowOrigin>& mutable_origins() { return origins_; }
  std::vector<BatchSpan>& mutable_spans() { return spans_; }

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }

  const SlotSchema* schema_;
  int rows_ = 0;
  std::vector<SlotColumn> columns_;
  std::vector<std::string> ins_ids_;
  std::vector<std::string> contents_;
  std::vector<RowOrigin> origins_;
  std::vector<BatchSpan> spans_;
};

}  // namespace millrace
