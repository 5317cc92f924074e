#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// Files of a folder in which a server of Paddle's the_one_ps saved one of its tables (docs/formats/server_table.md),
/// in the order of servers and shards. kNotFound when it has none; kIo.
Result<std::vector<std::string>> ServerTableFiles(const std::string& folder);

/// Reads the rows that servers saved in `folder` into a table without rows. Beside weights the state of Adam is read;
/// of an Adagrad table the state is that of new rows. kBadData with file and line for a line that is no row of such a
/// table, and for a key that is there twice; kCancelled after a stop request. Takes memory for three times the rows.
Status LoadServerRows(const std::string& folder, SparseTable* table, const std::stop_token& stop = {});

/// Writes all rows of a table of sgd or Adam as one server with kServerShards shards would, in the place of `folder`.
/// What is counted of shows and clicks is 0. kInvalidConfig for a table of another rule, kIo, kCancelled.
Status SaveServerRows(const SparseTable& table, const std::string& folder, const std::stop_token& stop = {});

/// Paddle's shard_num where a strategy says none: a server loads as many files as it has shards.
inline constexpr uint64_t kServerShards = 1000;

/// The values of a table of dense parameters that servers saved, one parameter behind the other. Errors as of
/// LoadServerRows.
Result<std::vector<float>> ReadServerDense(const std::string& folder, const std::stop_token& stop = {});

}  // namespace millrace
