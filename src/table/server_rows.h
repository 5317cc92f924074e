#pragma once

#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/replace_folder.h"
#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// Files of a table saved in a folder by a server of Paddle's the_one_ps (docs/formats/server_table.md), ordered by
/// server and shard. Fails with kNotFound if there are none, kIo if the folder cannot be read.
Result<std::vector<std::string>> ServerTableFiles(const std::string& folder);

/// The files that SaveServerRows wrote there.
std::set<std::string> FilesOfServerTable(const std::string& folder);
inline constexpr SavedFolder kServerTableFolder = {"a table of servers", FilesOfServerTable};

/// Loads the rows of `shards`, saved by servers in `folder`, into a table without these rows. For a table with shows
/// and clicks, complete rows are read except for their slot; for others, weights and Adam's state, while Adagrad's
/// state is initialized. Needs memory for three times these rows. Fails with kNotFound without files, kIo if one cannot
/// be read, kBadData with file and line for a malformed row or a duplicate key, kInvalidConfig for a table of another
/// kind, kCancelled after a stop request.
Status LoadServerRows(const std::string& folder, SparseTable* table, ShardRange shards = kAllShards,
                      const std::stop_token& stop = {});

/// Writes all rows of a table with counts, of SGD or of Adam as one server with kServerShards shards would, replacing
/// `folder`. Writes 0 for the slot and for counts the table does not have. Fails with kInvalidConfig for another rule
/// or if `folder` contains other files, kIo if a file cannot be written, kCancelled after a stop request.
Status SaveServerRows(const SparseTable& table, const std::string& folder, const std::stop_token& stop = {});

/// Paddle's default shard_num: a server loads as many files as it has shards.
inline constexpr uint64_t kServerShards = 1000;

/// The values of a table of dense parameters saved by servers, parameter after parameter. Fails with kNotFound, kIo,
/// kBadData and kCancelled like LoadServerRows.
Result<std::vector<float>> ReadServerDense(const std::string& folder, const std::stop_token& stop = {});

}  // namespace millrace
