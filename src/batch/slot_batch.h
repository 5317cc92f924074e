#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_schema.h"
#include "core/uninitialized_vector.h"

namespace millrace {

/// Origin of a row: file index in the file list and line number (from 1), 0 if unknown.
struct RowOrigin {
  uint32_t file = 0;
  uint64_t line = 0;
};

/// Lines [first, last] of a file in messages: "part-3:17", "part-3:17-20"; for a frame in memory, "frame:data", whose
/// rows count from 0: "data: row 16", "data: rows 16-19".
std::string DescribeLines(std::string_view file, uint64_t first, uint64_t last);

/// Consecutive positions (ConsumedRanges) in a batch: lines [begin, end) of file `source`, both from 0, or rows [begin,
/// end) of an in-memory dataset's order with source 0. A checkpoint records trained spans.
struct BatchSpan {
  uint32_t source = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The values of one slot for all rows of a batch, contiguous. Row i of a sparse slot is [offsets[i], offsets[i + 1]);
/// a dense slot has no offsets and `width` values per row.
///
///     rows   a: [7]  b: []  c: [5, 9]      ids = 7 5 9      offsets = 0 1 1 3
struct SlotColumn {
  UninitializedVector<uint64_t> ids;      ///< for kUint64
  UninitializedVector<float> floats;      ///< for kFloat
  UninitializedVector<uint32_t> offsets;  ///< rows + 1 entries for sparse slots; empty for dense slots
};

/// A batch of examples, one column per slot.
///
/// A feed fills it and passes it on; it is not changed afterwards. Buffers keep their capacity when cleared, so a
/// recycled batch does not allocate once it has seen the largest batch. One thread at a time.
class SlotBatch {
 public:
  explicit SlotBatch(const SlotSchema& schema);

  int rows() const { return rows_; }
  std::span<const uint64_t> ids(SlotId slot) const { return columns_[Index(slot)].ids; }
  std::span<const float> floats(SlotId slot) const { return columns_[Index(slot)].floats; }
  /// rows() + 1 offsets; empty for dense slots.
  std::span<const uint32_t> offsets(SlotId slot) const { return columns_[Index(slot)].offsets; }
  const SlotSchema& schema() const { return *schema_; }

  /// Names (`parse_ins_id`) and content strings (`parse_content`) of examples; empty if not enabled.
  std::span<const std::string> ins_ids() const { return {ins_ids_.data(), ins_ids_.empty() ? 0 : Index(rows_)}; }
  std::span<const std::string> contents() const { return {contents_.data(), contents_.empty() ? 0 : Index(rows_)}; }

  /// One entry per row; empty if the feed does not record origins.
  std::span<const RowOrigin> origins() const { return origins_; }
  std::span<const BatchSpan> spans() const { return spans_; }

  // Filling, only by feeds.
  void Clear();
  SlotColumn& column(SlotId slot) { return columns_[Index(slot)]; }
  void set_rows(int rows) { rows_ = rows; }
  /// Grown, never shrunk, so strings keep their capacity; only the first rows() entries are valid.
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
