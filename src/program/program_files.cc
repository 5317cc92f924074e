#include "program/program_files.h"

#include <algorithm>

#include "core/file.h"
#include "program/op_registry.h"
#include "program/text_proto.h"
#include "program/var_meta.h"

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

Result<bool> Fits(const ProgramDesc& program, const VarDesc& var, std::span<const int64_t> sizes) {
  MR_ASSIGN(const VarMeta meta, ToMeta(var));
  // A manifest may say any sizes: nothing is multiplied.
  const bool is_one_value = std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 1; });
  // Paddle describes the sums of ctr_metric_bundle as [1, 1], which its startup program makes as [1]: a value is a
  // value.
  if (meta.dims.rank() == 0 || (is_one_value && meta.dims.numel() == 1)) return true;
  if (AreCountsOfAuc(program, var.name())) return true;
  if (meta.dims.rank() != static_cast<int>(sizes.size())) return false;
  for (int axis = 0; axis < meta.dims.rank(); ++axis) {
    if (meta.dims[axis] >= 0 && meta.dims[axis] != sizes[static_cast<size_t>(axis)]) return false;
  }
  return true;
}

std::vector<std::string> PersistableTensors(const ProgramDesc& program) {
  std::vector<std::string> names;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.persistable() && var.type().type() == VarType::LOD_TENSOR) names.push_back(var.name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::set<std::string> WrittenPersistables(const ProgramDesc& program) {
  std::set<std::string_view> persistables;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.persistable()) persistables.insert(var.name());
  }
  std::set<std::string> names;
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      for (const OpDesc::Var& output : op.outputs()) {
        for (const std::string& name : output.arguments()) {
          if (persistables.contains(name)) names.insert(name);
        }
      }
    }
  }
  return names;
}

}  // namespace millrace
