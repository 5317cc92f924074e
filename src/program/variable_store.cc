#include "program/variable_store.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "core/checksummed_file.h"
#include "core/file.h"
#include "framework/lod_tensor_codec.h"
#include "framework/op_registry.h"
#include "framework/var_meta.h"
#include "table/sparse_table.h"

namespace millrace {
namespace {

constexpr char kTensorFile[] = "parameters";

using TablePtr = std::unique_ptr<SparseTable>;

// A table's name may hold characters that a file's may not.
std::string TableFile(const std::string& name) {
  std::string file = "tables/";
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

Result<StoredFile> FinishFile(ChecksummedFile& file, const std::string& name) {
  MR_ASSIGN(const FileSum sum, file.Finish());
  StoredFile stored;
  stored.set_name(name);
  stored.set_bytes(sum.bytes);
  stored.set_crc32c(sum.crc32c);
  return stored;
}

/// As Dims::ToString, for any number of axes.
std::string DimsText(const StoredVariable& variable) {
  std::string text;
  for (const int64_t size : variable.dims()) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return variable.dtype() + " [" + text + "]";
}

bool FitsDims(const Dims& declared, const StoredVariable& stored) {
  if (declared.rank() == 0) return true;
  if (declared.rank() != stored.dims_size()) return false;
  for (int axis = 0; axis < declared.rank(); ++axis) {
    if (declared[axis] >= 0 && declared[axis] != stored.dims(axis)) return false;
  }
  return true;
}

Result<std::string> Difference(const VarDesc& var, const StoredVariable& stored) {
  const bool is_table = var.type().type() == VarType::SPARSE_TABLE;
  if (is_table != stored.has_table()) return "is a " + std::string(is_table ? "table" : "tensor") + " now";
  if (is_table) {
    const std::string now = TableText(var);
    return now == stored.table() ? "" : "was {" + stored.table() + "} and is now {" + now + "}";
  }
  MR_ASSIGN(const VarMeta meta, ToMeta(var));
  if (FitsDims(meta.dims, stored) && DTypeName(meta.dtype) == stored.dtype()) return std::string();
  return "was " + DimsText(stored) + " and is now " + std::string(DTypeName(meta.dtype)) + " " + meta.dims.ToString();
}

/// A list may name a file that is not among those whose sums it gives.
Status CheckThere(const std::string& path, const std::string& what) {
  if (std::filesystem::is_regular_file(path)) return Status::Ok();
  return BadData("\"" + path + "\", which is to hold " + what + ", is not there");
}

}  // namespace

Result<StoredVariables> StoreVariables(const ProgramDesc& program, const std::string& folder, const Scope& root,
                                       TableContent content) {
  StoredVariables result;
  std::error_code error;
  std::filesystem::create_directories(folder + "/tables", error);
  if (error) return IoError("cannot make the folder \"" + folder + "/tables\": " + error.message());
  MR_ASSIGN(const auto tensors, ChecksummedFile::Create(folder + "/" + kTensorFile));
  std::string bytes;
  for (const auto& [name, var] : Persistables(program)) {
    const Variable* variable = root.Find(name);
    if (variable == nullptr || variable->empty()) return Internal("persistable variable \"" + name + "\" has no value");
    StoredVariable stored;
    stored.set_name(name);
    if (variable->Is<Tensor>()) {
      const Tensor& tensor = variable->Get<Tensor>();
      stored.set_file(kTensorFile);
      stored.set_dtype(std::string(DTypeName(tensor.dtype())));
      for (const int64_t size : tensor.dims().sizes()) stored.add_dims(size);
      bytes.clear();
      AppendLoDTensor(tensor, &bytes);
      tensors->stream().write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    } else if (variable->Is<TablePtr>()) {
      stored.set_file(TableFile(name));
      stored.set_table(TableText(*var));
      MR_ASSIGN(const auto file, ChecksummedFile::Create(folder + "/" + stored.file()));
      const Status saved = variable->Get<TablePtr>()->Save(file->stream(), content);
      MR_ASSIGN(StoredFile table_file,
                FinishFile(*file, stored.file()));  // says "disk full" before Save's "not written"
      MR_TRY(saved);
      result.files.push_back(std::move(table_file));
    } else {
      return Internal("persistable variable \"" + name + "\" is neither a tensor nor a table");
    }
    result.variables.push_back(std::move(stored));
  }
  MR_ASSIGN(StoredFile tensor_file, FinishFile(*tensors, kTensorFile));
  result.files.push_back(std::move(tensor_file));
  MR_TRY(SyncFolder(folder + "/tables"));
  return result;
}

Status CheckStoredFiles(const std::string& folder, const std::vector<StoredFile>& files) {
  for (const StoredFile& file : files) {
    Status status = CheckFileSum(folder + "/" + file.name(), {file.bytes(), file.crc32c()});
    if (status.ok()) continue;
    if (status.code() == StatusCode::kNotFound) return BadData(status.message());
    return status;
  }
  return Status::Ok();
}

Status CompareVariables(const ProgramDesc& program, const std::vector<StoredVariable>& stored) {
  std::string problems;
  const auto add = [&](const std::string& name, const std::string& what) {
    problems += (problems.empty() ? "variable \"" : "\nvariable \"") + name + "\" " + what;
  };
  const std::map<std::string, const VarDesc*> vars = Persistables(program);
  for (const StoredVariable& variable : stored) {
    const auto var = vars.find(variable.name());
    if (var == vars.end()) {
      add(variable.name(), "is stored, but the program has none of this name");
      continue;
    }
    MR_ASSIGN(const std::string difference, Difference(*var->second, variable));
    if (!difference.empty()) add(variable.name(), difference);
  }
  for (const auto& [name, var] : vars) {
    const bool found =
        std::any_of(stored.begin(), stored.end(), [&wanted = name](const auto& v) { return v.name() == wanted; });
    if (!found) add(name, "of the program is not stored");
  }
  return problems.empty() ? Status::Ok() : InvalidConfig(problems);
}

Status RestoreVariables(const std::string& folder, const std::vector<StoredVariable>& stored, Scope& root) {
  const std::string path = folder + "/" + kTensorFile;
  MR_TRY(CheckThere(path, "the tensors"));
  MR_ASSIGN(const std::string bytes, ReadFile(path));
  std::string_view rest = bytes;
  for (const StoredVariable& variable : stored) {
    if (variable.has_table()) {
      Variable* holder = root.Find(variable.name());
      if (holder == nullptr || !holder->Is<TablePtr>()) continue;
      const std::string table = folder + "/" + variable.file();
      MR_TRY(CheckThere(table, "table \"" + variable.name() + "\""));
      std::ifstream file(table, std::ios::binary);
      if (!file) return IoError("cannot open \"" + table + "\"");
      MR_TRY(holder->Get<TablePtr>()->Load(file).Context(table));
      continue;
    }
    Variable* holder = root.Var(variable.name());
    if (!holder->empty() && !holder->Is<Tensor>()) {
      return BadData(path + ": variable \"" + variable.name() +
                     "\" is stored as a tensor, and the program has a table");
    }
    Tensor* tensor = holder->GetMutable<Tensor>();
    MR_ASSIGN(const size_t taken, ReadLoDTensor(rest, path + ": variable \"" + variable.name() + "\"", tensor));
    rest.remove_prefix(taken);
  }
  if (!rest.empty()) return BadData(path + ": " + std::to_string(rest.size()) + " bytes follow the last variable");
  return Status::Ok();
}

}  // namespace millrace
