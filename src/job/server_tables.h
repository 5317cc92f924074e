#pragma once

#include <stop_token>
#include <string>

#include "core/status.h"
#include "model/model_compiler.h"
#include "runtime/scope.h"
#include "table/virtual_shards.h"

namespace millrace {

/// The folder of a table in one that servers of Paddle's the_one_ps saved: FOLDER/007.
std::string ServerTableFolder(const std::string& folder, int64_t id);

/// Reads what fleet.save_persistables had its servers write, program.server_dir: of the program's tables, which have no
/// rows yet, those of `shards`, and, where their folder is there, dense parameters, whose updates start anew. Errors of
/// LoadServerRows.
Status LoadServerTables(const CompiledModel& model, const std::string& folder, ShardRange shards, Scope& root,
                        const std::stop_token& stop = {});

/// Writes the rows of the program's tables, program.save_server_dir. Errors of SaveServerRows.
Status SaveServerTables(const CompiledModel& model, const std::string& folder, const Scope& root,
                        const std::stop_token& stop = {});

}  // namespace millrace
