#pragma once

#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/replace_folder.h"
#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// Files of a folder in which a server of Paddle's the_one_ps saved one of its tables (docs/formats/server_table.md),
/// in the order of servers and shards. kNotFound when it has none; kIo.
Result<std::vector<std::string>> ServerTableFiles(const std::string& folder);

/// Those that SaveServerRows wrote there, by name.
std::set<std::string> FilesOfServerTable(const std::string& folder);
inline constexpr SavedFolder kServerTableFolder = {"a table of servers", FilesOfServerTable};

/// Reads the rows of `shards` that servers saved in `folder` into a table that has none of them. Of a table that counts
/// shows and clicks rows are whole, but for their slot. Of others, beside weights, the state of Adam is read, and that
/// of Adagrad starts anew. kBadData with file and line for a line that is no row of such a table, and for a key that is
/// there twice; kCancelled after a stop request. Takes memory for three times these rows.
Status LoadServerRows(const std::string& folder, SparseTable* table, ShardRange shards = kAllShards,
                      const std::stop_token& stop = {});

/// Writes all rows of a table that counts, of sgd or of Adam as one server with kServerShards shards would, in the
/// place of `folder`. The slot is 0, and, of a table that does not count, so are the counts. kInvalidConfig for a table
/// of another rule, kIo, kCancelled.
Status SaveServerRows(const SparseTable& table, const std::string& folder, const std::stop_token& stop = {});

/// Paddle's shard_num where a strategy says none: a server loads as many files as it has shards.
inline constexpr uint64_t kServerShards = 1000;

/// The values of a table of dense parameters that servers saved, one parameter behind the other. Errors as of
/// LoadServerRows.
Result<std::vector<float>> ReadServerDense(const std::string& folder, const std::stop_token& stop = {});

}  // namespace millrace
