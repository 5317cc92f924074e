#include "program/program_files.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/file.h"
#include "framework/lod_tensor_codec.h"
#include "framework/op_registry.h"
#include "framework/var_meta.h"
#include "program/text_proto.h"

namespace millrace {
namespace {

bool LooksLikeText(std::string_view bytes) {
  // A serialized block of 35 bytes begins like a comment: its tag is a line feed, its length "#". It has a NUL or
  // another control character soon after, which text has not.
  const auto is_control = [](char c) { return c >= 0 && c < ' ' && c != '\t' && c != '\r' && c != '\n'; };
  if (std::any_of(bytes.begin(), bytes.end(), is_control)) return false;
  const size_t at = bytes.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos) return false;
  bytes.remove_prefix(at);
  return bytes.starts_with("blocks") || bytes.starts_with("version") || bytes.starts_with("op_version_map") ||
         bytes.starts_with("#");
}

/// True for the counts of an `auc` that forgets no batch. Paddle 2 declares them without the place for the counter of
/// batches that its startup program makes behind them; the operator takes both.
bool AreCountsOfAuc(const ProgramDesc& program, const std::string& name) {
  for (const OpDesc& op : program.blocks(0).ops()) {
    if (op.type() != "auc") continue;
    for (const OpDesc::Var& input : op.inputs()) {
      const bool is_count = input.parameter() == "StatPos" || input.parameter() == "StatNeg";
      if (is_count && input.arguments_size() == 1 && input.arguments(0) == name) return true;
    }
  }
  return false;
}

/// Compares what a file holds with what the program says.
Status CheckAgainst(const ProgramDesc& program, const std::string& name, const Tensor& tensor) {
  MR_ASSIGN(const VarMeta meta, ToMeta(*FindVar(program, name)));
  bool fits = meta.dims.rank() == 0 || meta.dims.rank() == tensor.dims().rank();
  for (int axis = 0; fits && axis < meta.dims.rank(); ++axis) {
    fits = meta.dims[axis] < 0 || meta.dims[axis] == tensor.dims()[axis];
  }
  fits = fits || AreCountsOfAuc(program, name);
  if (fits && meta.dtype == tensor.dtype()) return Status::Ok();
  return BadData("variable \"" + name + "\" is " + std::string(DTypeName(meta.dtype)) + " " + meta.dims.ToString() +
                 " in the program and " + std::string(DTypeName(tensor.dtype())) + " " + tensor.dims().ToString() +
                 " in the file");
}

Status LoadVariable(const ProgramDesc& program, const std::string& name, const std::string& path, Tensor* tensor) {
  MR_ASSIGN(const std::string bytes, ReadFile(path));
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

/// The operators that join parameters to one variable, by its name.
std::map<std::string, const OpDesc*> JoinedVariables(const ProgramDesc& startup) {
  std::map<std::string, const OpDesc*> joined;
  if (startup.blocks_size() == 0) return joined;
  for (const OpDesc& op : startup.blocks(0).ops()) {
    if (op.type() != "coalesce_tensor") continue;
    for (const std::string& name : OutputArguments(op, "FusedOutput")) joined[name] = &op;
  }
  return joined;
}

/// What a coalesce_tensor joins, as its parts are now: `count` values.
Status Join(const OpDesc& op, const Scope& root, int64_t count, Tensor* all) {
  float* to = all->Resize<float>({count});
  int64_t taken = 0;
  for (const std::string& name : OutputArguments(op, "Output")) {
    MR_ASSIGN(const Tensor* part, FindTensor(root, name));
    if (part->numel() > count - taken) return Internal("\"" + name + "\" has grown since coalesce_tensor joined it");
    std::copy_n(part->data<float>(), part->numel(), to + taken);
    taken += part->numel();
  }
  return taken == count ? Status::Ok() : Internal("parts have shrunk since coalesce_tensor joined them");
}

/// What to do where paddle.static.save wrote its pickles instead of a file for each variable; empty elsewhere.
std::string HintAtPickles(const std::string& folder) {
  constexpr std::string_view kPickle = ".pdparams";
  std::error_code error;
  std::filesystem::path found = folder;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == kPickle) found = entry->path();
  }
  if (found.extension() != kPickle) return "";
  const std::string prefix = found.replace_extension().string();
  return "\n\"" + prefix + std::string(kPickle) +
         "\" is of paddle.static.save, which only Python reads: in Paddle, paddle.static.load(main_program, \"" +
         prefix +
         "\", executor), then export_from_paddle.save_job or paddle.static.save_vars write a file for each variable";
}

}  // namespace

Result<ProgramDesc> ReadProgram(const std::string& path) {
  MR_ASSIGN(const std::string bytes, ReadFile(path));
  return ParseProgram(bytes, path);
}

Result<ProgramDesc> ParseProgram(const std::string& bytes, const std::string& origin) {
  ProgramDesc program;
  if (LooksLikeText(bytes)) {
    MR_TRY(ParseTextProto(bytes, origin, &program));
  } else if (!program.ParseFromString(bytes)) {
    return InvalidConfig(origin + ": neither a serialized ProgramDesc nor its text form");
  }
  if (program.blocks_size() == 0) return InvalidConfig(origin + ": the program has no blocks");
  return program;
}

std::vector<std::string> PersistableTensors(const ProgramDesc& program) {
  std::vector<std::string> names;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.persistable() && var.type().type() == VarType::LOD_TENSOR) names.push_back(var.name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status LoadVariables(const ProgramDesc& program, const std::string& folder, Scope& root) {
  std::string problems;
  StatusCode code = StatusCode::kOk;
  for (const std::string& name : PersistableTensors(program)) {
    Tensor* tensor = root.Var(name)->GetMutable<Tensor>();
    const Status status = LoadVariable(program, name, folder + "/" + name, tensor);
    if (status.ok()) continue;
    problems += (problems.empty() ? "" : "\n") + status.message();
    code = status.code();
  }
  if (problems.empty()) return Status::Ok();
  return Status(code, problems + HintAtPickles(folder));
}

Status SaveVariables(const ProgramDesc& program, const std::string& folder, const Scope& root) {
  return SaveVariables(program, ProgramDesc(), folder, root);
}

Status SaveVariables(const ProgramDesc& program, const ProgramDesc& startup, const std::string& folder,
                     const Scope& root) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return IoError(folder + ": cannot make the folder: " + error.message());
  const std::map<std::string, const OpDesc*> joined = JoinedVariables(startup);
  for (const std::string& name : PersistableTensors(program)) {
    MR_ASSIGN(const Tensor* tensor, FindTensor(root, name));
    Tensor parts;
    if (const auto op = joined.find(name); op != joined.end()) {
      MR_TRY(Join(*op->second, root, tensor->numel(), &parts));
      tensor = &parts;
    }
    std::string bytes;
    AppendLoDTensor(*tensor, &bytes);
    MR_TRY(WriteFileAtomically(folder + "/" + name, bytes));
  }
  return Status::Ok();
}

Status LoadCombined(const ProgramDesc& program, const std::string& path, Scope& root) {
  MR_ASSIGN(const std::string bytes, ReadFile(path));
  std::string_view rest = bytes;
  for (const std::string& name : PersistableTensors(program)) {
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

Status SaveCombined(const ProgramDesc& program, const std::string& path, const Scope& root) {
  MR_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  std::string bytes;
  for (const std::string& name : PersistableTensors(program)) {
    MR_ASSIGN(const Tensor* tensor, FindTensor(root, name));
    bytes.clear();
    AppendLoDTensor(*tensor, &bytes);
    MR_TRY(file.Append(bytes));
  }
  return file.Commit();
}

}  // namespace millrace
