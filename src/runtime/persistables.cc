#include "runtime/persistables.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/checksummed_file.h"
#include "core/contained_file.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "core/replace_folder.h"
#include "core/version.h"
#include "model.pb.h"
#include "program/op_registry.h"
#include "program/program_files.h"
#include "program/var_meta.h"
#include "runtime/checkpoint_manifest.h"
#include "runtime/lod_tensor_codec.h"
#include "runtime/transfer.h"
#include "runtime/variable_files.h"
#include "runtime/variable_store.h"
#include "table/matrix_rows.h"
#include "table/table_factory.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using TablePtr = std::unique_ptr<SparseTable>;

constexpr char kManifest[] = "MANIFEST";
constexpr char kWriting[] = "MANIFEST.writing";
constexpr char kTables[] = "tables";

std::vector<const VarDesc*> TablesOf(const ProgramDesc& program) {
  std::vector<const VarDesc*> tables;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.persistable() && var.type().type() == VarType::SPARSE_TABLE) tables.push_back(&var);
  }
  return tables;
}

/// The operators that join parameters, by name of the joined variable.
std::map<std::string, const OpDesc*> JoinedVariables(const ProgramDesc& startup) {
  std::map<std::string, const OpDesc*> joined;
  if (startup.blocks_size() == 0) return joined;
  for (const OpDesc& op : startup.blocks(0).ops()) {
    if (op.type() != "coalesce_tensor") continue;
    for (const std::string& name : OutputArguments(op, "FusedOutput")) joined[name] = &op;
  }
  return joined;
}

/// Concatenates the current parts of a coalesce_tensor: `count` values.
Status Join(const OpDesc& op, const Scope& root, int64_t count, Tensor* all) {
  float* to = all->Resize<float>({count});
  int64_t taken = 0;
  HostView host_view;
  for (const std::string& name : OutputArguments(op, "Output")) {
    const Variable* variable = root.Find(name);
    if (variable == nullptr || !variable->Is<Tensor>()) return Internal("\"" + name + "\" holds no tensor to save");
    MR_ASSIGN(const Tensor* const part, host_view.Of(variable->Get<Tensor>()));
    if (part->numel() > count - taken) return Internal("\"" + name + "\" has grown since coalesce_tensor joined it");
    std::copy_n(part->data<float>(), part->numel(), to + taken);
    taken += part->numel();
  }
  return taken == count ? Status::Ok() : Internal("parts have shrunk since coalesce_tensor joined them");
}

Status WriteTensor(const std::string& name, const Tensor& tensor, const std::string& folder,
                   CheckpointManifest* manifest) {
  HostView host_view;
  MR_ASSIGN(const Tensor* const shown, host_view.Of(tensor));
  std::string bytes;
  AppendLoDTensor(*shown, &bytes);
  MR_TRY(WriteFileAtomically(folder + "/" + name, bytes));
  StoredVariable& stored = *manifest->add_variable();
  stored.set_name(name);
  stored.add_file(name);
  stored.set_dtype(std::string(DTypeName(tensor.dtype())));
  for (const int64_t size : tensor.dims().sizes()) stored.add_dims(size);
  StoredFile& file = *manifest->add_file();
  file.set_name(name);
  PutSum({bytes.size(), Crc32c(0, bytes.data(), bytes.size()), std::nullopt}, &file);
  return Status::Ok();
}

/// Fills in optimizers missing in the program's tables from the manifest.
void TakeRules(const CheckpointManifest& manifest, ProgramDesc* program) {
  for (VarDesc& var : *program->mutable_blocks(0)->mutable_vars()) {
    for (VarDesc::Attr& attr : *var.mutable_attrs()) {
      TableDesc own;
      if (attr.name() != kTableAttr || !google::protobuf::TextFormat::ParseFromString(attr.s(), &own)) continue;
      if (own.optimizer().rule_case() != OptimizerDesc::RULE_NOT_SET) continue;
      for (const StoredVariable& stored : manifest.variable()) {
        TableDesc theirs;
        if (stored.name() != var.name() || !google::protobuf::TextFormat::ParseFromString(stored.table(), &theirs))
          continue;
        TableDesc without = theirs;
        for (TableDesc* desc : {&without, &own}) {
          desc->clear_optimizer();
          desc->clear_class_name();
        }
        if (without.SerializeAsString() == own.SerializeAsString()) attr.set_s(stored.table());
      }
    }
  }
}

/// The part of a manifest for a program's variables; the manifest can be of a larger program.
CheckpointManifest PartOf(const CheckpointManifest& manifest, const ProgramDesc& program) {
  CheckpointManifest part = manifest;
  part.clear_variable();
  part.clear_file();
  for (const StoredVariable& variable : manifest.variable()) {
    const VarDesc* var = FindVar(program, variable.name());
    if (var == nullptr || !var->persistable()) continue;
    *part.add_variable() = variable;
    for (const StoredFile& file : manifest.file()) {
      const std::vector<std::string> held = FilesOf(variable);
      if (std::find(held.begin(), held.end(), file.name()) != held.end()) *part.add_file() = file;
    }
  }
  return part;
}

Status LoadTables(const CheckpointManifest& manifest, const std::string& folder, const ProgramDesc& program,
                  const TableFactory& tables, int threads, const std::stop_token& stop, Scope& into) {
  for (const StoredVariable& variable : manifest.variable()) {
    if (!variable.has_table()) continue;
    MR_ASSIGN(TablePtr table, ReadTable(folder, variable, *FindVar(program, variable.name()), manifest.seed(), tables,
                                        threads, {stop}));
    into.Var(variable.name())->Set(std::move(table));
  }
  return Status::Ok();
}

/// The description of a program's table; nullopt if this version cannot read it.
std::optional<TableDesc> DescOf(const VarDesc& var) {
  TableDesc desc;
  for (const VarDesc::Attr& attr : var.attrs()) {
    if (attr.name() != kTableAttr) continue;
    if (google::protobuf::TextFormat::ParseFromString(attr.s(), &desc)) return desc;
  }
  return std::nullopt;
}

/// Tables of the program that the folder stores as a matrix with a row per id, as for a program whose embedding was in
/// each process completely.
std::vector<const VarDesc*> MatricesOf(const std::vector<const VarDesc*>& tables, const std::string& folder) {
  std::vector<const VarDesc*> matrices;
  for (const VarDesc* table : tables) {
    const std::optional<TableDesc> desc = DescOf(*table);
    const bool may_be = desc && !desc->has_accessor() && desc->key() != TableDesc::SLOT_AND_ID;
    if (may_be && StaysInFolder(table->name()) && MayBeThere(folder + "/" + table->name())) matrices.push_back(table);
  }
  return matrices;
}

/// Creates these tables, with the state of new rows.
Status LoadMatrices(const std::vector<const VarDesc*>& matrices, const std::string& folder, uint64_t seed,
                    const TableFactory& tables, const std::stop_token& stop, Scope& into) {
  for (const VarDesc* var : matrices) {
    const std::string path = folder + "/" + var->name();
    Tensor matrix;
    bool is_whole = false;
    {
      // As large as the matrix; freed before rows are created.
      MR_ASSIGN(const std::string bytes, ReadFile(path, stop));
      MR_ASSIGN(const size_t taken, ReadLoDTensor(bytes, path, &matrix));
      is_whole = taken == bytes.size();
    }
    MR_ASSIGN(TablePtr table, tables.Create(*DescOf(*var), seed));
    const int dim = table->shape().dim;
    if (!is_whole || matrix.dtype() != DType::kFloat32 || matrix.dims().rank() != 2 || matrix.dims()[1] != dim) {
      return BadData(path + ": table \"" + var->name() + "\" takes float32 [rows, " + std::to_string(dim) +
                     "], and the file has " + std::string(DTypeName(matrix.dtype())) + " " + matrix.dims().ToString());
    }
    const std::span<const float> values(matrix.data<float>(), static_cast<size_t>(matrix.numel()));
    MR_TRY(LoadMatrixRows(values, table.get()).Context(path));
    into.Var(var->name())->Set(std::move(table));
  }
  return Status::Ok();
}

Status NoTables(const std::vector<const VarDesc*>& tables, const std::string& folder) {
  std::string names;
  for (const VarDesc* table : tables) names += (names.empty() ? "\"" : ", \"") + table->name() + "\"";
  return NotFound("\"" + folder + "\" has no MANIFEST, and so no rows of " + names +
                  ": Paddle, or Millrace before it kept tables that grow, wrote it. Load a folder that "
                  "save_persistables or program.save_dir of this version wrote");
}

}  // namespace

Status SavePersistables(const ProgramDesc& program, const std::string& folder, const Scope& root,
                        const TrainedSoFar& trained, ManifestFor manifest_for, const ProgramDesc& startup, int threads,
                        const std::function<void(uint64_t bytes)>& on_done) {
  const std::vector<std::string> names = PersistableTensors(program);
  for (const std::string& name : names) {
    if (StaysInFolder(name)) continue;
    return InvalidConfig("variable \"" + name + "\": its file would lie outside the folder of the variables");
  }
  for (const char* taken : {kManifest, kWriting, kTables}) {
    if (!std::binary_search(names.begin(), names.end(), taken)) continue;
    return InvalidConfig("variable \"" + std::string(taken) +
                         "\" has the name of a file that says what a folder holds; "
                         "give the parameter another name");
  }
  MR_TRY(CheckMade(program, root));
  const std::vector<const VarDesc*> tables = TablesOf(program);
  MR_TRY(MakeFolder(folder));  // which refuses an empty name: the tables' folder would be "/tables"
  if (!tables.empty()) MR_TRY(MakeFolder(folder + "/" + kTables));
  MR_TRY(WriteFileAtomically(folder + "/" + kWriting, "a save goes on, or was cut short\n"));
  std::error_code error;
  fs::remove(folder + "/" + kManifest, error);
  if (error) return IoError(folder + "/" + kManifest + ": cannot remove it: " + error.message());
  CheckpointManifest manifest;
  manifest.set_millrace_version(MillraceVersion());
  manifest.set_step(trained.step);
  manifest.set_examples(trained.examples);
  manifest.set_seed(trained.seed);
  const std::map<std::string, const OpDesc*> joined = JoinedVariables(startup);
  for (const std::string& name : names) {
    const Tensor& tensor = root.Find(name)->Get<Tensor>();
    Tensor parts;
    const auto op = joined.find(name);
    if (op != joined.end()) MR_TRY(Join(*op->second, root, tensor.numel(), &parts));
    MR_TRY(WriteTensor(name, op == joined.end() ? tensor : parts, folder, &manifest));
    if (on_done) on_done(BytesOf(tensor));
  }
  StoredVariables stored;
  for (const VarDesc* var : tables) {
    const SparseTable& table = *root.Find(var->name())->Get<TablePtr>();
    MR_TRY(StoreTable(*var, table, folder, TableContent::kAll, threads, &stored, {{}, on_done}));
  }
  for (StoredVariable& variable : stored.variables) *manifest.add_variable() = std::move(variable);
  for (StoredFile& file : stored.files) *manifest.add_file() = std::move(file);
  if (!tables.empty()) MR_TRY(SyncFolder(folder + "/" + kTables));
  if (manifest_for == ManifestFor::kAll || !tables.empty()) {
    MR_TRY(WriteFileAtomically(folder + "/" + kManifest, ManifestText(manifest)));
  }
  fs::remove(folder + "/" + kWriting, error);
  return error ? IoError(folder + "/" + kWriting + ": cannot remove it: " + error.message()) : SyncFolder(folder);
}

bool HasManifest(const std::string& folder) { return MayBeThere(folder + "/" + kManifest); }

Result<std::optional<TrainedSoFar>> LoadPersistables(const ProgramDesc& program, const std::string& folder, Scope& root,
                                                     const TableFactory& tables, int threads,
                                                     const std::stop_token& stop) {
  std::error_code unknown;  // the manifest reports it
  if (fs::exists(folder + "/" + kWriting, unknown)) {
    return BadData("\"" + folder + "\": a save into it was cut short (" + kWriting +
                   " is there), so that its files are of two models; save again, or load another folder");
  }
  Scope trial(root.device());
  std::optional<TrainedSoFar> trained;
  if (HasManifest(folder)) {
    MR_ASSIGN(const std::string manifest, FileInFolder(folder, kManifest));
    MR_ASSIGN(const CheckpointManifest all, ReadManifest(manifest));
    ProgramDesc with_rules = program;
    TakeRules(all, &with_rules);
    const CheckpointManifest part = PartOf(all, program);
    std::set<std::string> of_matrices;
    std::vector<const VarDesc*> grown = TablesOf(with_rules);
    std::erase_if(grown, [&](const VarDesc* table) {
      return std::any_of(part.variable().begin(), part.variable().end(),
                         [&](const StoredVariable& v) { return v.name() == table->name() && v.has_table(); });
    });
    const std::vector<const VarDesc*> matrices = MatricesOf(grown, folder);
    for (const VarDesc* matrix : matrices) of_matrices.insert(matrix->name());
    MR_TRY(CompareVariables(with_rules, {part.variable().begin(), part.variable().end()}, of_matrices)
               .Context("\"" + folder + "\" does not fit the program"));
    for (const StoredVariable& variable : part.variable()) {
      const std::string file = variable.file_size() == 1 ? variable.file(0) : "";
      if (variable.has_table() || file == variable.name()) continue;
      return BadData("\"" + folder + "\" holds variable \"" + variable.name() + "\" in the file \"" + file +
                     "\", as checkpoints do: load_checkpoint reads those");
    }
    size_t held = 0;
    for (const StoredVariable& variable : part.variable()) held += FilesOf(variable).size();
    if (static_cast<size_t>(part.file_size()) != held) {
      return BadData("\"" + folder + "/" + kManifest + "\" does not have the sum of each variable's file");
    }
    MR_TRY(CheckStoredFiles(folder, {part.file().begin(), part.file().end()},
                            {part.variable().begin(), part.variable().end()}, threads, {stop}));
    MR_TRY(LoadTables(part, folder, with_rules, tables, threads, stop, trial));
    MR_TRY(LoadMatrices(matrices, folder, all.seed(), tables, stop, trial));
    trained = TrainedSoFar{all.step(), all.examples(), all.seed()};
  } else if (const std::vector<const VarDesc*> grown = TablesOf(program); !grown.empty()) {
    const std::vector<const VarDesc*> matrices = MatricesOf(grown, folder);
    if (matrices.size() < grown.size()) {
      std::vector<const VarDesc*> missing = grown;
      std::erase_if(missing, [&](const VarDesc* table) {
        return std::find(matrices.begin(), matrices.end(), table) != matrices.end();
      });
      return NoTables(missing, folder);
    }
    MR_TRY(LoadMatrices(matrices, folder, TrainedSoFar().seed, tables, stop, trial));
  }
  MR_TRY(LoadVariables(program, folder, trial, stop));
  TakeVariables(trial, root);
  return trained;
}

Status CheckMade(const ProgramDesc& program, const Scope& root) {
  std::string missing;
  const auto check = [&](const std::string& name, bool is_table) {
    const Variable* variable = root.Find(name);
    if (variable != nullptr && (is_table ? variable->Is<TablePtr>() : variable->Is<Tensor>())) return;
    missing += (missing.empty() ? "\"" : ", \"") + name + "\"";
  };
  for (const std::string& name : PersistableTensors(program)) check(name, false);
  for (const VarDesc* table : TablesOf(program)) check(table->name(), true);
  if (missing.empty()) return Status::Ok();
  return InvalidConfig("there is nothing to save yet of " + missing + "; run the startup program first");
}

void TakeVariables(Scope& from, Scope& to) {
  for (const std::string& name : from.Names()) {
    Variable* made = from.Find(name);
    Variable* taken = to.Var(name);
    if (made->Is<TablePtr>()) {
      taken->Set(std::move(*made->GetMutable<TablePtr>()));
    } else if (made->Is<Tensor>() && (taken->empty() || taken->Is<Tensor>())) {
      std::swap(*taken->GetMutable<Tensor>(), *made->GetMutable<Tensor>());
    } else if (made->Is<Tensor>()) {
      taken->Set(std::move(*made->GetMutable<Tensor>()));
    }
  }
}

}  // namespace millrace
