#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/checksummed_file.h"
#include "core/status.h"
#include "core/wire.h"
#include "table/sparse_table.h"

namespace millrace {

/// A file of a saved table that the rank which saves lets the owner of its rows write.
struct OwnersFile {
  ShardRange shards;  ///< all of the owner
  TableContent content = TableContent::kAll;
  uint64_t pushes = 0;                 ///< of the whole table: files of one save have one number
  std::optional<uint64_t> since = {};  ///< as TableHeader has it, of the whole table
  std::string path;                    ///< absolute
  std::string mark;  ///< what the rank that saves has written to `path`: who finds it there sees the same file
};

/// Makes `path` anew with a mark that no other file has.
Result<std::string> MarkFile(const std::string& path);

void PutOwnersFile(const OwnersFile& file, WireWriter* out);
/// What PutOwnersFile wrote; where it was cut off, in->ok() is false.
OwnersFile GetOwnersFile(WireReader* in);

/// What came of an owner's file.
struct ShardWriter {
  std::optional<FileSum> sum = {};
  std::string reason = {};  ///< without a sum: why it is left to the rank that saves
};

/// Writes the file over its mark, synced. Where this process may not write there, or finds no such mark, nothing is
/// touched and a reason comes back. A file that is removed meanwhile stays so.
Result<ShardWriter> WriteOwnersFile(const SparseTable& part, const OwnersFile& file);

/// Whether the file at `path` has so many bytes, as this rank sees it.
bool HasBytes(const std::string& path, uint64_t bytes);

/// Writes what SparseTable::Save wrote of several parts, whose shards ascend, as it writes one of all rows of `shards`.
/// `pushes` and `since` are the whole table's.
Status PutTogether(std::vector<std::istringstream> parts, ShardRange shards, uint64_t pushes,
                   std::optional<uint64_t> since, std::ostream* out);

}  // namespace millrace
