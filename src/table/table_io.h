#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "table/virtual_shards.h"

namespace millrace {

/// What a file of a saved table begins with; docs/formats/table.md has the bytes.
struct TableHeader {
  std::string name;
  std::string optimizer;  ///< RowOptimizer::Describe; empty: weights alone
  uint32_t dim = 0;
  uint32_t row_floats = 0;  ///< weights and state
  uint64_t rows = 0;        ///< of these shards
  uint64_t pushes = 0;
  ShardRange shards = kAllShards;
  bool by_key = false;  ///< an older file, whose rows ascend by key alone
  /// Of a file of changes: the pushes of the table that they change.
  std::optional<uint64_t> since = {};
};

/// Rows of a saved table, a block at a time: keys[i] has the floats from values[i * row_floats] on.
struct TableBlock {
  std::vector<uint64_t> keys;
  std::vector<float> values;
};

/// Rows in every block but the last.
inline constexpr size_t kTableBlockRows = 4096;

/// Writes a file of a table. One thread. The stream outlives it.
class TableWriter {
 public:
  /// kIo, as from the other calls, when the stream refuses to write.
  static Result<TableWriter> Create(std::ostream& out, const TableHeader& header);
  /// Adds a row of header.row_floats; they come by ascending virtual shard, then key, as many as the header says.
  Status Add(uint64_t key, const float* row);
  /// Writes what is left.
  Status Finish();

 private:
  TableWriter(std::ostream& out, size_t row_floats) : out_(&out), row_floats_(row_floats) {}
  std::ostream* out_;
  size_t row_floats_;
  TableBlock block_;
};

/// Reads and checks a file of a table: a wrong checksum, an impossible size, a row where it does not belong or a
/// missing byte is kBadData. Memory taken never exceeds a small multiple of the bytes that are there, whatever the
/// header claims. One thread. The stream outlives it.
class TableReader {
 public:
  /// Reads the header.
  static Result<TableReader> Open(std::istream& in);
  const TableHeader& header() const { return header_; }
  /// Rows that memory may be made for at once: no more than the stream has bytes for.
  uint64_t RowsToExpect() const;
  /// The next block, good until the next call; null behind the last one.
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
  uint64_t last_key_ = 0;  ///< of the block before
};

}  // namespace millrace
