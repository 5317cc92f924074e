#pragma once

#include <string>
#include <vector>

#include "batch/slot_schema.h"
#include "core/status.h"
#include "framework.pb.h"
#include "model.pb.h"
#include "model/model_compiler.h"
#include "model/model_parts.h"
#include "program/op_registry.h"

namespace millrace {

/// Whether a program is one that Paddle's fleet, or a transpiler of Paddle's, wrote for one of many workers: operators
/// in it send, receive or add up what others have.
bool IsOfFleet(const ProgramDesc& program);

/// Whether a program is that of a server (`listen_and_serv`), which has nothing to do where trainers keep the rows.
bool IsOfServer(const ProgramDesc& program);

/// Makes the programs of such a worker programs that one process trains by itself (docs/adr/0021-fleet-programs.md):
///
/// - rows that servers keep are rows of a table of `model`, which the startup program makes. The lookups and gradients
///   of `distributed_lookup_table` and `distributed_push_sparse` are those of `lookup_table`. So are the rows of any
///   other lookup whose parameter has the name of a table of `model`, in the place of its matrix and update;
/// - a gradient that is sent to a server, which would update the parameter, is followed by an update: that of
///   `model.optimizer`. Where the program updates the parameter itself (geo), nothing is sent;
/// - barriers and receiving do nothing. A sum over workers is that of one, and the loss's gradient is not divided.
///
/// `program` has programs of Paddle as its main and startup; the latter may be empty. Its tables, `of_servers` and
/// `server_tables` are filled. Of `model`, the tables and the optimizer are looked at. kInvalidConfig with all of the
/// programs that cannot be followed, a line each; mistakes of `model` are in `*mistakes` alone. After either the
/// programs are of no use.
Status TakeOverFromServers(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry,
                           const ModelParts& parts, CompiledModel* program, std::vector<ConfigMistake>* mistakes);

}  // namespace millrace
