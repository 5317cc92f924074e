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

/// What a table can do besides when its rows lie with others, who can write files themselves.
class SavesThroughOthers {
 public:
  virtual ~SavesThroughOthers() = default;
  /// Has who holds all rows of `shards` write the file `path`, synced, as Save writes it. Nullopt where it is left to
  /// the caller: the rows lie here, or with several, or who holds them does not see the folder. Any thread.
  virtual Result<std::optional<FileSum>> SaveThroughOwner(ShardRange shards, TableContent content,
                                                          const std::string& path) const = 0;
};

/// Paths of all files of one save of a table, in any order.
using FilesOfSave = std::vector<std::string>;

/// Bytes of so many rows in the files of a save, about.
uint64_t BytesOfRows(const TableShape& shape, TableContent content, int64_t rows);
/// In how many files so many rows are saved: one up to 32 MiB, then so many that each has 16 to 32, at most 16. A power
/// of two.
int CountTableFiles(const TableShape& shape, TableContent content, int64_t rows);

/// Writes `content` of a table into FOLDER/NAME or, in more files than one (`files` is a power of two, at most
/// kVirtualShards), into FOLDER/NAME/BEGIN-LAST, each with as many virtual shards. Up to `threads` files are written at
/// a time; the bytes do not depend on it. Files are synced, and what FOLDER/NAME was before goes; the folder exists and
/// is not synced. kIo with the system's reason; kCancelled after a stop request of `work`, with files cut off.
Result<std::vector<TableFile>> SaveTable(const SparseTable& table, TableContent content, const std::string& folder,
                                         const std::string& name, int files, int threads, const LongWork& work = {});

/// Reads the rows of `shards` into a table that has no rows, up to `threads` files at a time. The first of `saves` has
/// all rows, each further one what changed since the one before (TableContent::kChanges). kBadData that names the file,
/// or what no file holds, when a save is not whole, or not what follows the one before: a file is damaged, missing,
/// there twice or of another table or step. kCancelled after a stop request; the table is to be thrown away then.
/// Otherwise as SparseTable::Load.
Status LoadTable(const std::vector<FilesOfSave>& saves, ShardRange shards, int threads, SparseTable* table,
                 const LongWork& work = {});

}  // namespace millrace
