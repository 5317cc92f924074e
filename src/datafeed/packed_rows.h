#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "batch/slot_batch.h"
#include "core/huge_buffer.h"
#include "datafeed/row_layout.h"

namespace millrace {

/// Names a row of a PackedRows: a run of rows of one file that lie one after another, and the bytes before the row.
struct RowHandle {
  uint32_t run = 0;
  uint32_t offset = 0;
};
static_assert(sizeof(RowHandle) == 8);

/// Holds rows of text as bytes (RowLayout) in 4 MiB slabs. Rows never move until Release.
///
///     slab   [row row row ... row | free]        run = rows of one file in line order within one slab
///     handle {run, offset}                       run -> {first byte, file, first line}
///
/// Written by any number of PackedRowWriters at once, each with a slab of its own; read by any number of threads once
/// they are done. Slabs are mapped from the system and given back to it by Release.
class PackedRows {
 public:
  static constexpr size_t kSlabSize = size_t{4} << 20;
  /// Bytes behind a row that a decoder may read.
  static constexpr size_t kPadding = 64;

  PackedRows() = default;
  PackedRows(const PackedRows&) = delete;
  PackedRows& operator=(const PackedRows&) = delete;

  const uint8_t* Row(RowHandle handle) const { return runs_[handle.run].begin + handle.offset; }
  /// Asks for the first cache lines of a row.
  void Prefetch(RowHandle handle) const {
    const uint8_t* const row = Row(handle);
    for (size_t line = 0; line < 4; ++line) __builtin_prefetch(row + 64 * line);
  }
  /// File and line of a row.
  RowOrigin Origin(RowHandle handle) const;
  /// Where the rows of a run come from: for sorting runs.
  RowOrigin RunOrigin(uint32_t run) const { return {runs_[run].file, runs_[run].first_line}; }

  /// Bytes mapped for slabs, and their table.
  size_t bytes() const;
  void Release();
  /// Exchanges the rows of two; nobody reads or writes either meanwhile.
  void Swap(PackedRows& other);

 private:
  friend class PackedRowWriter;
  struct Run {
    const uint8_t* begin = nullptr;
    uint64_t first_line = 0;
    uint32_t file = 0;
  };
  std::span<uint8_t> AddSlab(size_t bytes);
  uint32_t AddRun(const Run& run);

  mutable std::mutex mutex_;  ///< slabs_ and runs_ while writers are at work
  std::vector<HugeBuffer> slabs_;
  std::vector<Run> runs_;
};

/// Appends encoded rows to a PackedRows. One thread.
class PackedRowWriter {
 public:
  explicit PackedRowWriter(PackedRows* rows) : rows_(rows) {}

  /// The rows that follow are of this file, with rising lines.
  void BeginFile(uint32_t file);
  /// Copies a row, which stands at `line`.
  RowHandle Append(uint64_t line, std::span<const uint8_t> row);

 private:
  PackedRows* rows_;
  std::span<uint8_t> slab_;
  size_t used_ = 0;
  uint32_t file_ = 0;
  uint64_t first_line_ = 0;
  size_t run_begin_ = 0;
  uint32_t run_ = 0;
  bool in_run_ = false;
};

}  // namespace millrace
