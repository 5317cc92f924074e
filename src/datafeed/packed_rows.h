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

/// Identifies a row of a PackedRows: a run of consecutive rows of one file, and the row's byte offset in it.
struct RowHandle {
  uint32_t run = 0;
  uint32_t offset = 0;
};
static_assert(sizeof(RowHandle) == 8);

/// Stores rows as bytes (RowLayout) in 4 MiB slabs. Rows never move until Release.
///
///     slab   [row row row ... row | free]        run = rows of one file in line order within one slab
///     handle {run, offset}                       run -> {first byte, file, first line}
///
/// Any number of PackedRowWriters can write concurrently, each to its own slab; any number of threads can read
/// afterwards. Slabs are mapped from the system, and Release unmaps them.
class PackedRows {
 public:
  static constexpr size_t kSlabSize = size_t{4} << 20;
  /// Bytes after a row that a decoder can read.
  static constexpr size_t kPadding = 64;

  PackedRows() = default;
  PackedRows(const PackedRows&) = delete;
  PackedRows& operator=(const PackedRows&) = delete;

  const uint8_t* Row(RowHandle handle) const { return runs_[handle.run].begin + handle.offset; }
  /// Prefetches the first cache lines of a row.
  void Prefetch(RowHandle handle) const {
    const uint8_t* const row = Row(handle);
    for (size_t line = 0; line < 4; ++line) __builtin_prefetch(row + 64 * line);
  }
  /// File and line of a row.
  RowOrigin Origin(RowHandle handle) const;
  /// File and first line of a run, for sorting runs.
  RowOrigin RunOrigin(uint32_t run) const { return {runs_[run].file, runs_[run].first_line}; }

  /// Bytes mapped for slabs and their table.
  size_t bytes() const;
  void Release();
  /// Exchanges the rows of two objects; no other thread may use either.
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

  mutable std::mutex mutex_;  ///< guards slabs_ and runs_ while writers run
  std::vector<HugeBuffer> slabs_;
  std::vector<Run> runs_;
};

/// Appends encoded rows to a PackedRows. One thread.
class PackedRowWriter {
 public:
  explicit PackedRowWriter(PackedRows* rows) : rows_(rows) {}

  /// Starts a file; the lines of the following rows ascend.
  void BeginFile(uint32_t file);
  /// Copies a row of line `line`.
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
