#include "runtime/variable_store.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "config/changed_fields.h"
#include "core/checksummed_file.h"
#include "core/contained_file.h"
#include "core/file.h"
#include "core/on_threads.h"
#include "core/replace_folder.h"
#include "model.pb.h"
#include "program/op_registry.h"
#include "program/program_files.h"
#include "program/var_meta.h"
#include "runtime/lod_tensor_codec.h"
#include "runtime/transfer.h"
#include "table/table_files.h"

namespace millrace {
namespace {

using google::protobuf::TextFormat;

constexpr char kTensorFile[] = "parameters";
constexpr char kTensorFolder[] = "tensors/";

using TablePtr = std::unique_ptr<SparseTable>;

// A table's name can contain characters that are invalid in file names.
std::string FileName(const std::string& name) {
  std::string file;
  for (const char c : name) {
    constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || c == '%' || byte < ' ') {
      file += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      file += c;
    }
  }
  return file;
}

std::string FileOfTable(const std::string& name) { return "tables/" + FileName(name); }
std::string FileOfTensor(const std::string& name) { return kTensorFolder + FileName(name); }

std::string TableText(const VarDesc& var) {
  for (const auto& attr : var.attrs()) {
    if (attr.name() == kTableAttr) return attr.s();
  }
  return "";
}

std::map<std::string, const VarDesc*> Persistables(const ProgramDesc& program) {
  std::map<std::string, const VarDesc*> vars;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (!var.persistable()) continue;
    const VarType::Type kind = var.type().type();
    if (kind == VarType::LOD_TENSOR || kind == VarType::SPARSE_TABLE) vars[var.name()] = &var;
  }
  return vars;
}

/// Like Dims::ToString, for any number of axes.
std::string DimsText(const StoredVariable& variable) {
  std::string text;
  for (const int64_t size : variable.dims()) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return variable.dtype() + " [" + text + "]";
}

/// The difference between the old and the new description of a table that a resumed run cannot change; empty: none.
std::string TableDifference(const std::string& before, const std::string& now) {
  if (before == now) return "";
  TableDesc was;
  TableDesc is;
  if (!TextFormat::ParseFromString(before, &was) || !TextFormat::ParseFromString(now, &is)) {
    return "was {" + before + "} and is now {" + now + "}";
  }
  std::string text;
  for (const ChangedField& field : ChangedFields(was, is, false)) {
    if (field.may_change) continue;
    text += (text.empty() ? "" : ", ") + field.path + " was " + field.before + " and is now " + field.now;
  }
  return text.empty() ? "" : "is a table of other rows: " + text;
}

Result<std::string> Difference(const ProgramDesc& program, const VarDesc& var, const StoredVariable& stored) {
  const bool is_table = var.type().type() == VarType::SPARSE_TABLE;
  if (is_table != stored.has_table()) return "is a " + std::string(is_table ? "table" : "tensor") + " now";
  if (is_table) return TableDifference(stored.table(), TableText(var));
  MR_ASSIGN(const VarMeta meta, ToMeta(var));
  MR_ASSIGN(const bool fits, Fits(program, var, {stored.dims().data(), static_cast<size_t>(stored.dims_size())}));
  if (fits && DTypeName(meta.dtype) == stored.dtype()) return std::string();
  return "was " + DimsText(stored) + " and is now " + std::string(DTypeName(meta.dtype)) + " " + meta.dims.ToString();
}

/// Tensors of other devices are copied to the host one at a time, into one file.
bool HasOwnFile(const Tensor& tensor) {
  return tensor.is_on_host() && !tensor.has_lod() && BytesOf(tensor) >= kLargeTensor;
}

/// Size of a stored tensor's values in bytes.
Result<size_t> BytesOfStored(const StoredVariable& stored) {
  for (const DType type : {DType::kBool, DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                           DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    if (DTypeName(type) != stored.dtype()) continue;
    size_t bytes = SizeOf(type);
    for (const int64_t size : stored.dims()) bytes *= static_cast<size_t>(size);
    return bytes;
  }
  return BadData("variable \"" + stored.name() + "\" is of type \"" + stored.dtype() + "\", which is none");
}

/// A manifest can list a file for which it has no checksum.
Result<std::string> FindStored(const std::string& folder, const std::string& file, const std::string& what) {
  Result<std::string> path = FileInFolder(folder, file);
  if (path.status().code() != StatusCode::kNotFound) return path;
  return BadData("\"" + folder + "/" + file + "\", which is to hold " + what + ", is not there");
}

/// `it is of table "t": `, or empty for another file.
std::string TableOf(const std::string& file, const std::vector<StoredVariable>& variables) {
  for (const StoredVariable& variable : variables) {
    const std::vector<std::string> files = FilesOf(variable);
    if (!variable.has_table() || std::find(files.begin(), files.end(), file) == files.end()) continue;
    return "it is of table \"" + variable.name() + "\": ";
  }
  return "";
}

/// Loads the files of a stored table into `table`.
Status LoadStored(const std::string& folder, const StoredVariable& stored, int threads, SparseTable* table,
                  const LongWork& work) {
  const std::string what = "table \"" + stored.name() + "\"";
  std::vector<FilesOfSave> saves;
  const auto add = [&](const auto& files) -> Status {
    FilesOfSave& paths = saves.emplace_back();
    for (const std::string& file : files) {
      MR_ASSIGN(std::string path, FindStored(folder, file, what));
      paths.push_back(std::move(path));
    }
    return Status::Ok();
  };
  MR_TRY(add(stored.file()));
  for (const StoredChanges& changes : stored.changes()) MR_TRY(add(changes.file()));
  return LoadTable(saves, kAllShards, threads, table, work);
}

/// Whether a variable was large enough to save its changes in separate files.
bool IsLarge(const StoredVariable& stored) {
  return stored.has_table() ? stored.file_size() > 1 : HasTensorFile(stored);
}

/// The earlier save of a large variable, if changes can be added to it.
const StoredVariable* FindEarlier(const std::string& name, const EarlierSave* earlier) {
  if (earlier == nullptr || earlier->folder.empty()) return nullptr;
  const std::vector<StoredVariable>& variables = earlier->stored.variables;
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&name](const StoredVariable& variable) { return variable.name() == name; });
  if (found == variables.end() || !IsLarge(*found)) return nullptr;
  const bool is_long = found->changes_size() + 1 >= earlier->full_every;
  return is_long && !(earlier->hurries && earlier->full_every > 1) ? nullptr : &*found;
}

/// Whether saving `changes` bytes after `earlier`'s files of a variable is worthwhile, given its total size `all`.
bool AreFew(const StoredVariable& variable, const EarlierSave& earlier, uint64_t changes, uint64_t all) {
  if (earlier.hurries) return changes < all;
  const std::vector<std::string> names = FilesOf(variable);
  const std::set<std::string> files(names.begin(), names.end());
  uint64_t bytes = changes;
  for (const StoredFile& file : earlier.stored.files) bytes += files.contains(file.name()) ? file.bytes() : 0;
  return bytes <= all + all / 2;
}

/// A table in an earlier save.
struct EarlierTable {
  const StoredVariable* variable = nullptr;
  int64_t changed_rows = 0;  ///< since then, approximately
};

/// Nullopt: save the whole table.
Result<std::optional<EarlierTable>> FindEarlierTable(const VarDesc& var, const SparseTable& table,
                                                     const EarlierSave* earlier) {
  const StoredVariable* const found = FindEarlier(var.name(), earlier);
  if (found == nullptr || !found->has_table()) return std::optional<EarlierTable>();
  MR_ASSIGN(const ChangedRows changed, CountChangesOf(table));
  if (changed.since < 0) return std::optional<EarlierTable>();
  const uint64_t changes = BytesOfRows(table.shape(), TableContent::kChanges, changed.rows);
  const uint64_t all = BytesOfRows(table.shape(), TableContent::kAll, table.stats().rows);
  if (!AreFew(*found, *earlier, changes, all)) return std::optional<EarlierTable>();
  return std::optional(EarlierTable{found, changed.rows});
}

/// Creates hard links in `to` for files of `from`; on failure removes them and returns false.
bool LinkFiles(const std::vector<std::string>& files, const std::filesystem::path& from,
               const std::filesystem::path& to) {
  std::error_code error;
  for (const std::string& file : files) {
    const std::filesystem::path link = to / file;
    std::filesystem::create_directories(link.parent_path(), error);
    if (!error) std::filesystem::create_hard_link(from / file, link, error);
    if (error) break;
  }
  if (!error) return true;
  std::error_code ignored;
  for (const std::string& file : files) std::filesystem::remove(to / file, ignored);
  for (const std::string& file : files) {  // the last folder is removed with its last file
    std::filesystem::path at = std::filesystem::path(file).parent_path();
    for (; !at.empty() && at != "tables" && at != "tensors"; at = at.parent_path())
      std::filesystem::remove(to / at, ignored);
  }
  return false;
}

/// Syncs the folders of `files` below `folder`.
Status SyncFoldersOf(const std::vector<std::string>& files, const std::string& folder) {
  std::set<std::filesystem::path> folders;
  for (const std::string& file : files) {
    for (std::filesystem::path at = std::filesystem::path(file).parent_path(); !at.empty(); at = at.parent_path()) {
      folders.insert(at);
    }
  }
  for (const std::filesystem::path& at : folders) MR_TRY(SyncFolder(folder + "/" + at.string()));
  return Status::Ok();
}

/// Adds the files of SaveTable to a save's data.
template <class AddFile>
void NoteFiles(const std::vector<TableFile>& files, std::vector<StoredFile>* sums, const AddFile& add_file) {
  for (const TableFile& file : files) {
    add_file(file.name);
    StoredFile& sum = sums->emplace_back();
    sum.set_name(file.name);
    PutSum(file.sum, &sum);
  }
}

/// A variable of an earlier save, extended by another save of changes.
struct MoreChanges {
  StoredVariable variable;
  std::vector<std::string> files;  ///< of earlier saves, linked in `folder`
  std::string path;                ///< path for the changes, relative to the folder; its folder exists
};

/// Nullopt if files cannot be shared.
Result<std::optional<MoreChanges>> LinkEarlier(const StoredVariable& before, const std::string& folder,
                                               const EarlierSave& earlier, StoredVariables* stored) {
  MoreChanges more{before, FilesOf(before), ""};
  if (!LinkFiles(more.files, earlier.folder, folder)) return std::optional<MoreChanges>();
  const std::string changes = "changes/" + std::to_string(before.changes_size() + 1);
  MR_TRY(MakeFolder(folder + "/" + changes));
  more.path = changes + "/" + FileName(before.name());
  for (const StoredFile& file : earlier.stored.files) {
    if (std::find(more.files.begin(), more.files.end(), file.name()) != more.files.end()) stored->files.push_back(file);
  }
  return std::optional(std::move(more));
}

/// Saves the changes of a table; false if files cannot be shared.
Result<bool> StoreChanges(const VarDesc& var, const SparseTable& table, const std::string& folder,
                          const EarlierSave& earlier, const EarlierTable& before, int threads, StoredVariables* stored,
                          const LongWork& work) {
  MR_ASSIGN(std::optional<MoreChanges> more, LinkEarlier(*before.variable, folder, earlier, stored));
  if (!more) return false;
  more->variable.set_table(TableText(var));
  const int count = CountTableFiles(table.shape(), TableContent::kChanges, before.changed_rows);
  MR_ASSIGN(const std::vector<TableFile> saved,
            SaveTable(table, TableContent::kChanges, folder, more->path, count, threads, work));
  StoredChanges& now = *more->variable.add_changes();
  NoteFiles(saved, &stored->files, [&](const std::string& name) {
    now.add_file(name);
    more->files.push_back(name);
  });
  stored->variables.push_back(std::move(more->variable));
  MR_TRY(SyncFoldersOf(more->files, folder));
  return true;
}

/// A tensor with separate files.
struct LargeTensor {
  size_t variable = 0;  ///< index in StoredVariables::variables
  const Tensor* tensor = nullptr;
  std::string path = {};                 ///< the file to write
  std::vector<uint64_t> blocks = {};     ///< changed blocks
  bool is_whole = true;                  ///< write all of it
  std::vector<std::string> shared = {};  ///< files already linked
};

bool IsOfSameShape(const StoredVariable& a, const StoredVariable& b) {
  return !a.has_table() && a.dtype() == b.dtype() &&
         std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end());
}

/// Switches `large` to saving changes if `earlier` allows it.
Status PlanChanges(const std::string& folder, const EarlierSave& earlier, const BlockSums& sums, LargeTensor* large,
                   StoredVariables* stored) {
  StoredVariable& variable = stored->variables[large->variable];
  const StoredVariable* const before = FindEarlier(variable.name(), &earlier);
  const auto known = earlier.stored.blocks.find(variable.name());
  if (before == nullptr || known == earlier.stored.blocks.end() || !IsOfSameShape(*before, variable)) {
    return Status::Ok();
  }
  std::vector<uint64_t> blocks = ChangedBlocks(known->second, sums);
  if (!AreFew(*before, earlier, BytesOfBlocks(blocks.size()), BytesOf(*large->tensor))) return Status::Ok();
  MR_ASSIGN(std::optional<MoreChanges> more, LinkEarlier(*before, folder, earlier, stored));
  if (!more) return Status::Ok();
  more->variable.add_changes()->add_file(more->path);
  variable = std::move(more->variable);
  large->is_whole = false;
  large->path = std::move(more->path);
  large->shared = std::move(more->files);
  large->blocks = std::move(blocks);
  return Status::Ok();
}

/// Decides how to write a large tensor, and where.
Status PlanLargeTensor(const std::string& folder, const EarlierSave& earlier, int threads, LargeTensor* large,
                       StoredVariables* stored, const LongWork& work) {
  StoredVariable& variable = stored->variables[large->variable];
  if (earlier.full_every > 1) {
    MR_ASSIGN(BlockSums sums, SumBlocks(*large->tensor, threads));
    MR_TRY(PlanChanges(folder, earlier, sums, large, stored));
    stored->blocks[variable.name()] = std::move(sums);
  }
  if (large->is_whole) {
    large->path = FileOfTensor(variable.name());
    variable.add_file(large->path);
  }
  const uint64_t bytes = large->is_whole ? BytesOf(*large->tensor) : BytesOfBlocks(large->blocks.size());
  if (work.on_expected) work.on_expected(bytes);
  return Status::Ok();
}

Status StoreLargeTensors(const std::string& folder, const EarlierSave& earlier, int threads,
                         std::vector<LargeTensor> tensors, StoredVariables* stored, const LongWork& work) {
  if (tensors.empty()) return Status::Ok();
  MR_TRY(MakeFolder(folder + "/tensors"));
  for (LargeTensor& large : tensors) MR_TRY(PlanLargeTensor(folder, earlier, threads, &large, stored, work));
  std::vector<StoredFile> sums(tensors.size());
  MR_TRY(OnThreads(threads, tensors.size(), "saving tensors", [&](size_t i) {
    const LargeTensor& large = tensors[i];
    const std::string path = folder + "/" + large.path;
    Result<FileSum> sum = large.is_whole ? WriteTensorFile(*large.tensor, path, work)
                                         : WriteBlocksFile(*large.tensor, large.blocks, path, work);
    if (!sum.ok()) return sum.status();
    sums[i].set_name(large.path);
    PutSum(*sum, &sums[i]);
    return Status::Ok();
  }));
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].shared.push_back(tensors[i].path);
    MR_TRY(SyncFoldersOf(tensors[i].shared, folder));
    stored->files.push_back(std::move(sums[i]));
  }
  return Status::Ok();
}

/// Loads the file of a large tensor, with its changes, into `tensor`.
Status RestoreLargeTensor(const std::string& folder, const StoredVariable& stored, Tensor* tensor,
                          const LongWork& work) {
  const std::string what = "tensor \"" + stored.name() + "\"";
  MR_ASSIGN(const std::string path, FindStored(folder, stored.file(0), what));
  MR_ASSIGN(std::string bytes, ReadFile(path, work.stop));
  MR_TRY(work.Done(bytes.size(), "loading \"" + folder + "\""));
  MR_ASSIGN(const size_t values, BytesOfStored(stored));
  if (values > bytes.size()) return BadData("\"" + path + "\" is shorter than " + what);
  const std::span<char> last(bytes.data() + bytes.size() - values, values);
  for (const StoredChanges& changes : stored.changes()) {
    for (const std::string& file : changes.file()) {
      MR_ASSIGN(const std::string changed, FindStored(folder, file, what));
      MR_TRY(ReadBlocksFile(changed, last, work));
    }
  }
  MR_ASSIGN(const size_t taken, ReadLoDTensor(bytes, path + ": " + what, tensor));
  if (taken != bytes.size() || BytesOf(*tensor) != values) {
    return BadData("\"" + path + "\" is not what " + what + " is said to be");
  }
  return Status::Ok();
}

}  // namespace

bool HasTensorFile(const StoredVariable& variable) {
  return variable.file_size() == 1 && variable.file(0).starts_with(kTensorFolder);
}

std::vector<std::string> FilesOf(const StoredVariable& variable) {
  std::vector<std::string> files(variable.file().begin(), variable.file().end());
  for (const StoredChanges& changes : variable.changes()) {
    files.insert(files.end(), changes.file().begin(), changes.file().end());
  }
  return files;
}

Status BeginChanges(const std::vector<StoredVariable>& stored, Scope& root, bool here_alone) {
  for (const StoredVariable& variable : stored) {
    Variable* const holder = root.Find(variable.name());
    if (!variable.has_table() || !IsLarge(variable) || holder == nullptr || !holder->Is<TablePtr>()) continue;
    auto* const notes = dynamic_cast<ChangeTracking*>(holder->Get<TablePtr>().get());
    if (notes == nullptr) continue;
    if (here_alone) {
      notes->BeginChangesHere();
    } else {
      MR_TRY(notes->BeginChanges());
    }
  }
  return Status::Ok();
}

Status SumLargeTensors(const Scope& root, int threads, StoredVariables* stored) {
  HostView host_view;
  for (const StoredVariable& variable : stored->variables) {
    const Variable* const holder = root.Find(variable.name());
    if (variable.has_table() || !IsLarge(variable) || holder == nullptr || !holder->Is<Tensor>()) continue;
    MR_ASSIGN(const Tensor* const shown, host_view.Of(holder->Get<Tensor>()));
    MR_ASSIGN(stored->blocks[variable.name()], SumBlocks(*shown, threads));
  }
  return Status::Ok();
}

Result<StoredFile> FinishFile(ChecksummedFile& file, const std::string& name) {
  MR_ASSIGN(const FileSum sum, file.Finish());
  StoredFile stored;
  stored.set_name(name);
  PutSum(sum, &stored);
  return stored;
}

void PutSum(const FileSum& sum, StoredFile* file) {
  file->set_bytes(sum.bytes);
  file->set_crc32c(sum.crc32c);
  if (sum.xxh64) file->set_xxh64(*sum.xxh64);
}

Status StoreTable(const VarDesc& var, const SparseTable& table, const std::string& folder, TableContent content,
                  int threads, StoredVariables* stored, const LongWork& work) {
  StoredVariable& variable = stored->variables.emplace_back();
  variable.set_name(var.name());
  variable.set_table(TableText(var));
  MR_ASSIGN(const std::vector<TableFile> files,
            SaveTable(table, content, folder, FileOfTable(var.name()),
                      CountTableFiles(table.shape(), content, table.stats().rows), threads, work));
  NoteFiles(files, &stored->files, [&variable](const std::string& name) { variable.add_file(name); });
  return Status::Ok();
}

Result<std::unique_ptr<SparseTable>> ReadTable(const std::string& folder, const StoredVariable& stored,
                                               const VarDesc& var, uint64_t seed, const TableFactory& tables,
                                               int threads, const LongWork& work) {
  TableDesc desc;
  const std::string text = TableText(var);
  if (!TextFormat::ParseFromString(text, &desc)) {
    return InvalidConfig("table \"" + var.name() + "\" is described as {" + text +
                         "}, which this version does not read");
  }
  MR_ASSIGN(std::unique_ptr<SparseTable> table, tables.Create(desc, seed));
  MR_TRY(LoadStored(folder, stored, threads, table.get(), work));
  return table;
}

SaveSize SaveSize::Of(const ProgramDesc& program, const Scope& root) {
  SaveSize size;
  for (const auto& [name, var] : Persistables(program)) {
    const Variable* const variable = root.Find(name);
    if (variable == nullptr || variable->empty()) continue;
    if (variable->Is<Tensor>()) {
      const Tensor& tensor = variable->Get<Tensor>();
      (HasOwnFile(tensor) ? size.large_tensors_ : size.tensors_) += BytesOf(tensor);
    } else if (variable->Is<TablePtr>()) {
      size.tables_.push_back(variable->Get<TablePtr>().get());
    }
  }
  return size;
}

uint64_t SaveSize::BytesToWrite(bool has_earlier) const {
  uint64_t bytes = tensors_ + (has_earlier ? 0 : large_tensors_);
  for (const SparseTable* table : tables_) {
    const int64_t rows = has_earlier ? AboutChangedHereOf(*table) : table->stats().rows;
    bytes += BytesOfRows(table->shape(), TableContent::kAll, rows);
  }
  return bytes;
}

uint64_t BytesToStore(const ProgramDesc& program, const Scope& root, const EarlierSave* earlier) {
  uint64_t bytes = 0;
  for (const auto& [name, var] : Persistables(program)) {
    const Variable* variable = root.Find(name);
    if (variable == nullptr || variable->empty()) continue;
    if (variable->Is<Tensor>()) {
      const Tensor& tensor = variable->Get<Tensor>();
      if (earlier == nullptr || !HasOwnFile(tensor)) bytes += BytesOf(tensor);
    } else if (variable->Is<TablePtr>()) {
      const SparseTable& table = *variable->Get<TablePtr>();
      const Result<std::optional<EarlierTable>> before = FindEarlierTable(*var, table, earlier);
      const int64_t rows = before.ok() && *before ? (*before)->changed_rows : table.stats().rows;
      bytes += BytesOfRows(table.shape(), TableContent::kAll, rows);
    }
  }
  return bytes;
}

Result<StoredVariables> StoreVariables(const ProgramDesc& program, const std::string& folder, const Scope& root,
                                       TableContent content, int threads, const LongWork& work,
                                       const EarlierSave* earlier) {
  StoredVariables result;
  MR_TRY(MakeFolder(folder + "/tables"));
  MR_ASSIGN(const auto tensors, ChecksummedFile::Create(folder + "/" + kTensorFile, work));
  std::string bytes;
  HostView host_view;
  std::vector<LargeTensor> large;
  for (const auto& [name, var] : Persistables(program)) {
    const Variable* variable = root.Find(name);
    if (variable == nullptr || variable->empty()) return Internal("persistable variable \"" + name + "\" has no value");
    if (variable->Is<Tensor>()) {
      const Tensor& tensor = variable->Get<Tensor>();
      StoredVariable& stored = result.variables.emplace_back();
      stored.set_name(name);
      stored.set_dtype(std::string(DTypeName(tensor.dtype())));
      for (const int64_t size : tensor.dims().sizes()) stored.add_dims(size);
      if (earlier != nullptr && HasOwnFile(tensor)) {
        large.push_back({result.variables.size() - 1, &tensor});
        continue;
      }
      stored.add_file(kTensorFile);
      MR_ASSIGN(const Tensor* const shown, host_view.Of(tensor));
      bytes.clear();
      AppendLoDTensor(*shown, &bytes);
      tensors->stream().write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    } else if (variable->Is<TablePtr>()) {
      const SparseTable& table = *variable->Get<TablePtr>();
      MR_ASSIGN(const std::optional<EarlierTable> before, FindEarlierTable(*var, table, earlier));
      bool is_stored = false;
      if (before) {
        MR_ASSIGN(is_stored, StoreChanges(*var, table, folder, *earlier, *before, threads, &result, work));
      }
      if (!is_stored) MR_TRY(StoreTable(*var, table, folder, content, threads, &result, work));
    } else {
      return Internal("persistable variable \"" + name + "\" is neither a tensor nor a table");
    }
  }
  MR_ASSIGN(StoredFile tensor_file, FinishFile(*tensors, kTensorFile));
  result.files.push_back(std::move(tensor_file));
  if (earlier != nullptr) MR_TRY(StoreLargeTensors(folder, *earlier, threads, std::move(large), &result, work));
  MR_TRY(SyncFolder(folder + "/tables"));
  return result;
}

Status CheckStoredFiles(const std::string& folder, const std::vector<StoredFile>& files,
                        const std::vector<StoredVariable>& variables, int threads, const LongWork& work) {
  return OnThreads(threads, files.size(), "checking stored files", [&](size_t i) {
    const StoredFile& file = files[i];
    FileSum sum{file.bytes(), file.crc32c(), std::nullopt};
    if (file.has_xxh64()) sum.xxh64 = file.xxh64();
    const Result<std::string> path = FileInFolder(folder, file.name());
    Status status = path.ok() ? CheckFileSum(*path, sum, work) : path.status();
    if (status.code() != StatusCode::kNotFound && status.code() != StatusCode::kBadData) return status;
    return BadData(status.message() + "; " + TableOf(file.name(), variables) +
                   "copy all files of the folder again, or use another one");
  });
}

Status CompareVariables(const ProgramDesc& program, const std::vector<StoredVariable>& stored,
                        const std::set<std::string>& settings) {
  std::string problems;
  const auto add = [&](const std::string& name, const std::string& what) {
    problems += (problems.empty() ? "variable \"" : "\nvariable \"") + name + "\" " + what;
  };
  const std::map<std::string, const VarDesc*> vars = Persistables(program);
  for (const StoredVariable& variable : stored) {
    if (settings.contains(variable.name())) continue;
    const auto var = vars.find(variable.name());
    if (var == vars.end()) {
      add(variable.name(), "is stored, but the program has none of this name");
      continue;
    }
    MR_ASSIGN(const std::string difference, Difference(program, *var->second, variable));
    if (!difference.empty()) add(variable.name(), difference);
  }
  for (const auto& [name, var] : vars) {
    if (settings.contains(name)) continue;
    const bool found =
        std::any_of(stored.begin(), stored.end(), [&wanted = name](const auto& v) { return v.name() == wanted; });
    if (!found) add(name, "of the program is not stored");
  }
  return problems.empty() ? Status::Ok() : InvalidConfig(problems);
}

Status RestoreVariables(const std::string& folder, const std::vector<StoredVariable>& stored, Scope& root,
                        std::map<std::string, Tensor>* settings, int threads, const LongWork& work) {
  MR_ASSIGN(const std::string path, FindStored(folder, kTensorFile, "the tensors"));
  MR_ASSIGN(const std::string bytes, ReadFile(path, work.stop));
  MR_TRY(work.Done(bytes.size(), "loading \"" + folder + "\""));
  std::string_view rest = bytes;
  for (const StoredVariable& variable : stored) {
    if (work.stop.stop_requested()) return Cancelled("stopped while loading \"" + folder + "\"");
    if (variable.has_table()) {
      Variable* holder = root.Find(variable.name());
      if (holder == nullptr || !holder->Is<TablePtr>()) continue;
      MR_TRY(LoadStored(folder, variable, threads, holder->Get<TablePtr>().get(), work));
      continue;
    }
    const bool is_setting = settings != nullptr && settings->contains(variable.name());
    Variable* holder = is_setting ? nullptr : root.Var(variable.name());
    if (holder != nullptr && !holder->empty() && !holder->Is<Tensor>()) {
      return BadData(path + ": variable \"" + variable.name() +
                     "\" is stored as a tensor, and the program has a table");
    }
    Tensor* tensor = is_setting ? &settings->at(variable.name()) : holder->GetMutable<Tensor>();
    if (IsLarge(variable)) {
      MR_TRY(RestoreLargeTensor(folder, variable, tensor, work));
      continue;
    }
    MR_ASSIGN(const size_t taken, ReadLoDTensor(rest, path + ": variable \"" + variable.name() + "\"", tensor));
    rest.remove_prefix(taken);
  }
  if (!rest.empty()) return BadData(path + ": " + std::to_string(rest.size()) + " bytes follow the last variable");
  return Status::Ok();
}

}  // namespace millrace
