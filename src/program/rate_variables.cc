#include "program/rate_variables.h"

#include <map>
#include <vector>

namespace millrace {

std::set<std::string> RateVariables(const ProgramDesc& program) {
  std::map<std::string, std::vector<const OpDesc*>> writers;
  std::set<std::string> parameters;
  std::set<std::string> persistables;
  std::vector<std::string> open;
  for (const BlockDesc& block : program.blocks()) {
    for (const VarDesc& var : block.vars()) {
      if (var.persistable()) persistables.insert(var.name());
      if (var.is_parameter()) parameters.insert(var.name());
    }
    for (const OpDesc& op : block.ops()) {
      for (const OpDesc::Var& output : op.outputs()) {
        for (const std::string& name : output.arguments()) writers[name].push_back(&op);
      }
      for (const OpDesc::Var& input : op.inputs()) {
        if (input.parameter() != "LearningRate") continue;
        open.insert(open.end(), input.arguments().begin(), input.arguments().end());
      }
    }
  }
  std::set<std::string> rates;
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    const auto written = writers.find(name);
    const bool is_kept = written != writers.end() && persistables.contains(name);
    if (is_kept || parameters.contains(name) || !rates.insert(name).second || written == writers.end()) continue;
    for (const OpDesc* op : written->second) {
      for (const OpDesc::Var& input : op->inputs()) {
        open.insert(open.end(), input.arguments().begin(), input.arguments().end());
      }
    }
  }
  return rates;
}

}  // namespace millrace
