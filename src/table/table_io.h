#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// What a saved table begins with; docs/formats/table.md has the bytes.
struct TableHeader {
  std::string name;
  std::string optimizer;  ///< RowOptimizer::Describe; empty: weights alone
  uint32_t dim = 0;
  uint32_t row_floats = 0;  ///< weights and state
  uint64_t rows = 0;
  uint64_t pushes = 0;
};

/// Rows of a saved table, a block at a time: keys[i] has values[i * row_floats, ...).
struct TableBlock {
  std::vector<uint64_t> keys;
  std::vector<float> values;
};

/// Rows in every block but the last.
inline constexpr size_t kTableBlockRows = 4096;

Status WriteTableHeader(std::ostream& out, const TableHeader& header);
Status WriteTableBlock(std::ostream& out, const TableBlock& block);

/// Reads and checks; a wrong checksum, an impossible size or a missing byte is kBadData. Memory taken never exceeds a
/// small multiple of the bytes that are there, whatever the header claims.
Result<TableHeader> ReadTableHeader(std::istream& in);
/// Reads block number `index` of the table; keys must ascend and follow `block`'s last key of the call before.
Status ReadTableBlock(std::istream& in, const TableHeader& header, uint64_t index, TableBlock* block);
/// Blocks that a table of this many rows has.
uint64_t TableBlocks(const TableHeader& header);

}  // namespace millrace
