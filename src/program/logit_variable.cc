#include "program/logit_variable.h"

#include <algorithm>
#include <iterator>

#include "program/op_registry.h"

namespace millrace {

std::string LogitVariable(const ProgramDesc& program, std::string_view prediction) {
  if (program.blocks_size() == 0) return "";
  const auto& ops = program.blocks(0).ops();
  std::set<std::string, std::less<>> names = {std::string(prediction)};
  const auto writes = [&names](const OpDesc& op) { return Writes(op, names); };
  const auto wrote = std::find_if(ops.rbegin(), ops.rend(), writes);
  if (wrote == ops.rend() || wrote->type() != "sigmoid") return "";
  const std::vector<std::string> inputs = InputArguments(*wrote, "X");
  if (inputs.size() != 1) return "";
  names = {inputs[0]};
  return std::any_of(ops.rbegin(), std::next(wrote), writes) ? "" : inputs[0];
}

}  // namespace millrace
