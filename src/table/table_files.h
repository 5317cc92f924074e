#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/checksummed_file.h"
#include "core/long_work.h"
#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// A file of a saved table.
struct TableFile {
  std::string name;  ///< relative to the folder
  FileSum sum;
};

/// Optional interface of a table whose rows are in other processes that can write files.
class SavesThroughOthers {
 public:
  virtual ~SavesThroughOthers() = default;
  /// Lets the process that has all rows of `shards` write `path` as Save would, synced. Returns nullopt if the caller
  /// must write it: the rows are here or in several processes, or the owner cannot access the folder. Any thread. Fails
  /// with the owner's failure to write, kInternal for kChanges if the changes are unknown, or if the owner cannot be
  /// reached.
  virtual Result<std::optional<FileSum>> SaveThroughOwner(ShardRange shards, TableContent content,
                                                          const std::string& path) const = 0;
};

/// Paths of all files of one save, in any order.
using FilesOfSave = std::vector<std::string>;

/// Approximate size of this number of rows in a save.
uint64_t BytesOfRows(const TableShape& shape, TableContent content, int64_t rows);
/// Number of files for a save of this number of rows: one up to 32 MiB, then as many as give each 16 to 32 MiB, at most
/// 16. A power of two.
int CountTableFiles(const TableShape& shape, TableContent content, int64_t rows);

/// Writes `content` of a table into FOLDER/NAME or, if `files` (a power of two, at most kVirtualShards) is more than
/// one, into FOLDER/NAME/BEGIN-LAST, each with the same number of virtual shards. Writes up to `threads` files
/// concurrently; the bytes do not depend on it. Files are synced and replace FOLDER/NAME; the existing folder is not
/// synced. Fails with kIo and the system's reason, kCancelled after a stop request of `work`, leaving truncated files.
Result<std::vector<TableFile>> SaveTable(const SparseTable& table, TableContent content, const std::string& folder,
                                         const std::string& name, int files, int threads, const LongWork& work = {});

/// Loads the rows of `shards` into an empty table, up to `threads` files concurrently. The first of `saves` has all
/// rows, each further one the changes since its predecessor (TableContent::kChanges). Fails with kAlreadyExists if the
/// table is not empty, kIo if a file cannot be opened, kBadData if a save is incomplete or does not follow its
/// predecessor (a file is damaged, missing, duplicated, or of another table or step), kCancelled after a stop request,
/// otherwise like SparseTable::Load. After a failure the table must be discarded.
Status LoadTable(const std::vector<FilesOfSave>& saves, ShardRange shards, int threads, SparseTable* table,
                 const LongWork& work = {});

}  // namespace millrace
