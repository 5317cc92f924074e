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

/// Training progress for learning-rate schedules, and the seed for initial rows of tables.
struct TrainedSoFar {
  int64_t step = 0;
  int64_t examples = 0;
  uint64_t seed = 1;
};

/// When a folder of variables gets a MANIFEST: Paddle's have none, but growing tables cannot be read without it.
enum class ManifestFor { kAll, kTables };

/// Writes every persistable variable of `program` to `folder`, creating it if needed: each tensor to a file with its
/// name (Paddle's save_vars) and each growing table with its optimizer state to tables/NAME. Writes `trained` and the
/// files' checksums to MANIFEST (docs/formats/checkpoint.md) if `manifest_for` requires it. Other files in the folder
/// stay.
///
/// If the startup program is known, a variable joined by its `coalesce_tensor` (for example the weights of paddle.nn's
/// recurrent layers) is written with the current values of its parts, whose memory it shares in Paddle.
///
/// Writes up to `threads` files of a table concurrently; LoadPersistables reads likewise.
///
/// An interrupted save leaves MANIFEST.writing, and LoadPersistables then rejects the folder. `on_done` (can be empty)
/// receives counts of written bytes from any thread. Fails with kIo and the system's reason, kInvalidConfig for a
/// variable with the name of one of those files, kInternal for a variable without a value.
Status SavePersistables(const ProgramDesc& program, const std::string& folder, const Scope& root,
                        const TrainedSoFar& trained, ManifestFor manifest_for, const ProgramDesc& startup, int threads,
                        const std::function<void(uint64_t bytes)>& on_done = {});

/// Whether a folder has a MANIFEST with tables and optimizer states, that is, Millrace wrote it.
bool HasManifest(const std::string& folder);

/// Loads the persistable variables of `program` from such a folder, or from one of Paddle's without MANIFEST and tables
/// (returns nullopt). On failure `root` is unchanged; on success its tables are replaced. A table without an optimizer
/// in the program gets the file's; `tables` creates it by class. A table stored as a matrix gets a row with new state
/// per id. Fails with kBadData for damaged or interrupted saves and for shapes or types of other tensors, kNotFound for
/// missing files, kInvalidConfig if tables or MANIFEST do not fit the program, kCancelled after a stop request.
Result<std::optional<TrainedSoFar>> LoadPersistables(const ProgramDesc& program, const std::string& folder, Scope& root,
                                                     const TableFactory& tables, int threads,
                                                     const std::stop_token& stop = {});

/// Fails with kInvalidConfig, naming the persistable tensors and tables of `program` missing in `root`: its startup
/// program has not run.
Status CheckMade(const ProgramDesc& program, const Scope& root);

/// Moves the tensors and tables of `from` to the variables of `to` with the same names; tensor addresses do not change.
void TakeVariables(Scope& from, Scope& to);

}  // namespace millrace
