#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

class TableFactory;

/// How far parameters were trained, which schedules of learning rates go by, and the seed that rows of tables start by.
struct TrainedSoFar {
  int64_t step = 0;
  int64_t examples = 0;
  uint64_t seed = 1;
};

/// Which folders of variables get a MANIFEST: Paddle's have none, and tables that grow cannot be read without it.
enum class ManifestFor { kAll, kTables };

/// Writes every persistable variable of `program` to `folder`, which is made when it is not there: each tensor to a
/// file of its name (Paddle's save_vars), each table that grows, with its optimizer's state, to tables/NAME, and
/// `trained` with the sums of these files to MANIFEST (docs/formats/checkpoint.md), for the folders that `manifest_for`
/// says. Other files of the folder stay.
///
/// Where the startup program is known, what its `coalesce_tensor` joined (paddle.nn's recurrent layers have all their
/// weights in one variable as well) is written as its parts are now, whose memory it shares in Paddle.
///
/// Up to `threads` files of a table are written at a time, here, and read in LoadPersistables.
///
/// A save that is cut short leaves MANIFEST.writing behind, and LoadPersistables refuses the folder. `on_done` (or
/// empty) is told of bytes that were written, from whichever thread. kIo with the system's reason; kInvalidConfig for a
/// variable with the name of one of those files.
Status SavePersistables(const ProgramDesc& program, const std::string& folder, const Scope& root,
                        const TrainedSoFar& trained, ManifestFor manifest_for, const ProgramDesc& startup, int threads,
                        const std::function<void(uint64_t bytes)>& on_done = {});

/// Whether a folder of variables says which it has, with tables and optimizers' state: Millrace wrote it.
bool HasManifest(const std::string& folder);

/// Reads the persistable variables of `program` from such a folder, or from one of Paddle's, which has no MANIFEST and
/// no tables: nullopt then. `root` gets all of them or, after a failure, none; its tables are replaced. A table of the
/// program that names no rule takes that of the file, and is made by its class of `tables`; one that the folder has as
/// a matrix has a row for each of its ids, with the state of a new row. All that is missing, damaged or does not fit is
/// in one Status. kCancelled after a stop request.
Result<std::optional<TrainedSoFar>> LoadPersistables(const ProgramDesc& program, const std::string& folder, Scope& root,
                                                     const TableFactory& tables, int threads,
                                                     const std::stop_token& stop = {});

/// kInvalidConfig that names the persistable tensors and tables of `program` that `root` lacks: its startup program has
/// not run.
Status CheckMade(const ProgramDesc& program, const Scope& root);

/// Puts the tensors and tables of `from` in the place of those of `to` that have their names; a tensor's address stays.
void TakeVariables(Scope& from, Scope& to);

}  // namespace millrace
