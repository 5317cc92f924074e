#include "job/server_tables.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "runtime/transfer.h"
#include "table/server_rows.h"
#include "table/sparse_table.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Dense parameters lie one behind the other, in the order in which the worker sends their gradients.
Status LoadDense(const ServerTable& table, const std::string& folder, Scope& root, const std::stop_token& stop) {
  MR_ASSIGN(const std::vector<float> values, ReadServerDense(folder, stop));
  int64_t wanted = 0;
  for (const std::string& name : table.variables) wanted += root.Find(name)->Get<Tensor>().numel();
  if (wanted != static_cast<int64_t>(values.size())) {
    return BadData("\"" + folder + "\" has " + std::to_string(values.size()) + " values, and the " +
                   std::to_string(table.variables.size()) + " dense parameters from \"" + table.variables[0] +
                   "\" on " + std::to_string(wanted) + "; a part of it is missing, or it is of another program");
  }
  const float* from = values.data();
  for (const std::string& name : table.variables) {
    Tensor* tensor = root.Find(name)->GetMutable<Tensor>();
    Tensor host;
    float* to = host.Resize<float>(tensor->dims());
    std::copy_n(from, tensor->numel(), to);
    from += tensor->numel();
    MR_TRY(CopyFromHost(host, tensor));
  }
  return Status::Ok();
}

}  // namespace

std::string ServerTableFolder(const std::string& folder, int64_t id) {
  const std::string number = std::to_string(id);
  return folder + "/" + std::string(3 - std::min<size_t>(number.size(), 3), '0') + number;
}

Status LoadServerTables(const CompiledModel& model, const std::string& folder, ShardRange shards, Scope& root,
                        const std::stop_token& stop) {
  for (const ServerTable& table : model.server_tables) {
    const std::string place = ServerTableFolder(folder, table.id);
    std::error_code unknown;
    if (!table.is_rows) {
      if (fs::exists(place, unknown)) MR_TRY(LoadDense(table, place, root, stop));
      continue;
    }
    SparseTable* rows = root.Find(table.variables[0])->Get<std::unique_ptr<SparseTable>>().get();
    MR_TRY(LoadServerRows(place, rows, shards, stop).Context("program.server_dir"));
  }
  return Status::Ok();
}

Status SaveServerTables(const CompiledModel& model, const std::string& folder, const Scope& root,
                        const std::stop_token& stop) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return IoError("program.save_server_dir: cannot make \"" + folder + "\": " + error.message());
  for (const ServerTable& table : model.server_tables) {
    if (!table.is_rows) continue;
    const SparseTable& rows = *root.Find(table.variables[0])->Get<std::unique_ptr<SparseTable>>();
    MR_TRY(SaveServerRows(rows, ServerTableFolder(folder, table.id), stop).Context("program.save_server_dir"));
  }
  return Status::Ok();
}

}  // namespace millrace
