#include "runtime/variable_files.h"

#include <filesystem>
#include <string_view>

#include "core/checksummed_file.h"
#include "core/contained_file.h"
#include "core/file.h"
#include "core/folder_entries.h"
#include "program/op_registry.h"
#include "program/program_files.h"
#include "program/var_meta.h"
#include "runtime/lod_tensor_codec.h"
#include "runtime/tensor.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

Status CheckAgainst(const ProgramDesc& program, const std::string& name, const Tensor& tensor) {
  const VarDesc& var = *FindVar(program, name);
  MR_ASSIGN(const VarMeta meta, ToMeta(var));
  MR_ASSIGN(const bool fits, Fits(program, var, tensor.dims().sizes()));
  if (fits && meta.dtype == tensor.dtype()) return Status::Ok();
  return BadData("variable \"" + name + "\" is " + std::string(DTypeName(meta.dtype)) + " " + meta.dims.ToString() +
                 " in the program and " + std::string(DTypeName(tensor.dtype())) + " " + tensor.dims().ToString() +
                 " in the file");
}

/// A variable's name is its file's name.
Status CheckFileName(const std::string& name) {
  if (StaysInFolder(name)) return Status::Ok();
  return InvalidConfig("variable \"" + name + "\": its file would lie outside the folder of the variables");
}

Status LoadVariable(const ProgramDesc& program, const std::string& name, const std::string& path, Tensor* tensor,
                    const std::stop_token& stop) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return BadData("\"" + path + "\" is no plain file, and that of variable \"" + name + "\" belongs there");
  }
  MR_ASSIGN(const std::string bytes, ReadFile(path, stop));
  MR_ASSIGN(const size_t taken, ReadLoDTensor(bytes, path, tensor));
  if (taken != bytes.size()) {
    return BadData(path + ": " + std::to_string(bytes.size() - taken) + " bytes follow the tensor of variable \"" +
                   name + "\"; is it a combined file?");
  }
  return CheckAgainst(program, name, *tensor);
}

Result<const Tensor*> FindTensor(const Scope& root, const std::string& name) {
  const Variable* variable = root.Find(name);
  if (variable == nullptr || !variable->Is<Tensor>()) {
    return Internal("persistable variable \"" + name + "\" holds no tensor to save");
  }
  return &variable->Get<Tensor>();
}

/// Advice if paddle.static.save wrote pickles instead of a file per variable; otherwise empty.
std::string HintAtPickles(const std::string& folder) {
  constexpr std::string_view kPickle = ".pdparams";
  std::filesystem::path found = folder;
  if (const auto names = NamesIn(folder); names.ok()) {
    for (const std::filesystem::path name : *names) {
      if (name.extension() == kPickle) found = folder / name;
    }
  }
  if (found.extension() != kPickle) return "";
  const std::string prefix = found.replace_extension().string();
  return "\n\"" + prefix + std::string(kPickle) +
         "\" is of paddle.static.save, which only Python reads: in Paddle, paddle.static.load(main_program, \"" +
         prefix +
         "\", executor), then export_from_paddle.save_job or paddle.static.save_vars write a file for each variable";
}

}  // namespace

Status LoadVariables(const ProgramDesc& program, const std::string& folder, Scope& root, const std::stop_token& stop) {
  std::string problems;
  StatusCode code = StatusCode::kOk;
  for (const std::string& name : PersistableTensors(program)) {
    MR_TRY(CheckFileName(name));
    Tensor* tensor = root.Var(name)->GetMutable<Tensor>();
    Status status = LoadVariable(program, name, folder + "/" + name, tensor, stop);
    if (status.ok()) continue;
    if (status.code() == StatusCode::kCancelled) return status;
    problems += (problems.empty() ? "" : "\n") + status.message();
    code = status.code();
  }
  if (problems.empty()) return Status::Ok();
  return Status(code, problems + HintAtPickles(folder));
}

Status LoadCombined(const ProgramDesc& program, const std::string& path, Scope& root, const std::stop_token& stop) {
  MR_ASSIGN(const std::string bytes, ReadFile(path, stop));
  std::string_view rest = bytes;
  for (const std::string& name : PersistableTensors(program)) {
    if (stop.stop_requested()) return Cancelled("stopped while loading \"" + path + "\"");
    Tensor* tensor = root.Var(name)->GetMutable<Tensor>();
    MR_ASSIGN(const size_t taken, ReadLoDTensor(rest, path + ": variable \"" + name + "\"", tensor));
    MR_TRY(CheckAgainst(program, name, *tensor).Context(path));
    rest.remove_prefix(taken);
  }
  if (!rest.empty()) {
    return BadData(path + ": " + std::to_string(rest.size()) + " bytes follow the last variable of the program");
  }
  return Status::Ok();
}

Status SaveCombined(const ProgramDesc& program, const std::string& path, const Scope& root, const LongWork& work) {
  MR_ASSIGN(const auto file, ChecksummedFile::Create(path, work));
  std::string bytes;
  HostView host_view;
  for (const std::string& name : PersistableTensors(program)) {
    MR_ASSIGN(const Tensor* tensor, FindTensor(root, name));
    MR_ASSIGN(tensor, host_view.Of(*tensor));
    bytes.clear();
    AppendLoDTensor(*tensor, &bytes);
    if (!file->stream().write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) break;
  }
  return file->Finish().status();
}

}  // namespace millrace
