#include "program/logit_variable.h"

#include <algorithm>

#include "program/op_registry.h"

namespace millrace {
namespace {

bool Writes(const OpDesc& op, std::string_view name) {
  return std::any_of(op.outputs().begin(), op.outputs().end(), [name](const OpDesc::Var& output) {
    return std::find(output.arguments().begin(), output.arguments().end(), name) != output.arguments().end();
  });
}

}  // namespace

std::string LogitVariable(const ProgramDesc& program, std::string_view prediction) {
  if (program.blocks_size() == 0) return "";
  const auto& ops = program.blocks(0).ops();
  const auto wrote = std::find_if(ops.rbegin(), ops.rend(), [&](const OpDesc& op) { return Writes(op, prediction); });
  if (wrote == ops.rend() || wrote->type() != "sigmoid") return "";
  const std::vector<std::string> inputs = InputArguments(*wrote, "X");
  if (inputs.size() != 1) return "";
  const bool is_written =
      std::any_of(ops.rbegin(), std::next(wrote), [&](const OpDesc& op) { return Writes(op, inputs[0]); });
  return is_written ? "" : inputs[0];
}

}  // namespace millrace
