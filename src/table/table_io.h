#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "table/virtual_shards.h"

namespace millrace {

/// Header of a file of a saved table (docs/formats/table.md).
struct TableHeader {
  std::string name;
  std::string optimizer;  ///< RowOptimizer::Describe; empty: weights only
  uint32_t dim = 0;
  uint32_t row_floats = 0;  ///< weights and state
  uint64_t rows = 0;        ///< of these shards
  uint64_t pushes = 0;
  ShardRange shards = kAllShards;
  bool by_key = false;  ///< an older file whose rows are sorted only by key
  /// For a file of changes: the table's pushes before them.
  std::optional<uint64_t> since = {};
};

/// A block of a saved table's rows: keys[i] has the floats starting at values[i * row_floats].
struct TableBlock {
  std::vector<uint64_t> keys;
  std::vector<float> values;
};

/// Rows per block except the last.
inline constexpr size_t kTableBlockRows = 4096;

/// Writes a file of a table. One thread. The stream must outlive it. Every function fails with kIo if the stream cannot
/// be written.
class TableWriter {
 public:
  /// Writes the header. Fails with kIo.
  static Result<TableWriter> Create(std::ostream& out, const TableHeader& header);
  /// Adds a row of header.row_floats. Rows must ascend by virtual shard, then key, and their number must match the
  /// header. Fails with kIo.
  Status Add(uint64_t key, const float* row);
  /// Writes the last block. Fails with kIo.
  Status Finish();

 private:
  TableWriter(std::ostream& out, size_t row_floats) : out_(&out), row_floats_(row_floats) {}
  std::ostream* out_;
  size_t row_floats_;
  TableBlock block_;
};

/// Reads and verifies a file of a table. Fails with kBadData for a wrong checksum, an impossible size, a misplaced row
/// or a missing byte. Memory is bounded by a small multiple of the available bytes, whatever the header claims. One
/// thread. The stream must outlive it.
class TableReader {
 public:
  /// Reads the header. Fails as stated for the class.
  static Result<TableReader> Open(std::istream& in);
  const TableHeader& header() const { return header_; }
  /// Number of rows to reserve memory for: no more than the stream has bytes for.
  uint64_t RowsToExpect() const;
  /// The next block, valid until the next call; null after the last. Fails as stated for the class.
  Result<const TableBlock*> Next();

 private:
  TableReader(std::istream& in, TableHeader header) : in_(&in), header_(std::move(header)) {}
  Status ReadBlock(uint64_t rows);
  Status CheckOrder() const;
  std::istream* in_;
  TableHeader header_;
  TableBlock block_;
  uint64_t blocks_ = 0;  ///< read so far
  uint64_t rows_ = 0;
  uint64_t last_key_ = 0;  ///< of the previous block
};

}  // namespace millrace
