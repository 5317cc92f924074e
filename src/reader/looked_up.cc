#include "reader/looked_up.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/reader_holder.h"

namespace millrace {
namespace {

/// Whether an operator's Out has the values of its X.
bool PassesValuesOn(std::string_view type) {
  constexpr std::string_view kTypes[] = {"assign",   "cast",    "flatten",  "flatten2",  "lod_reset", "reshape",
                                         "reshape2", "squeeze", "squeeze2", "unsqueeze", "unsqueeze2"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

bool LooksUp(const OpDesc& op) {
  const OpDesc::Attr* out_of_range = FindAttr(op, "out_of_range");
  return out_of_range == nullptr || out_of_range->s() != "ZERO";
}

/// The operators of all blocks that run.
std::vector<const OpDesc*> OpsOf(const Executable& program) {
  std::vector<const OpDesc*> ops;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpDesc& op : program.ops(block)) ops.push_back(&op);
  }
  return ops;
}

/// Whether one of `ops` looks up the values of `name` in a table.
bool AreIds(const std::string& name, const std::vector<const OpDesc*>& ops) {
  std::set<std::string> same = {name};
  const auto takes = [&same](const OpDesc& op, std::string_view parameter) {
    const std::vector<std::string> names = InputArguments(op, parameter);
    return std::any_of(names.begin(), names.end(), [&same](const std::string& one) { return same.contains(one); });
  };
  for (size_t known = 0; known < same.size();) {
    known = same.size();
    for (const OpDesc* op : ops) {
      if (takes(*op, "Ids") && LooksUp(*op)) return true;  // only lookups have such an input
      if (!PassesValuesOn(op->type()) || !takes(*op, "X")) continue;
      for (std::string& out : OutputArguments(*op, "Out")) same.insert(std::move(out));
    }
  }
  return false;
}

}  // namespace

void MarkLookedUp(const Executable& program, Scope& scope) {
  const std::vector<const OpDesc*> ops = OpsOf(program);
  for (const OpDesc* op : ops) {
    if (op->type() != "read") continue;
    Variable* variable = scope.Find(InputArguments(*op, "Reader").at(0));
    if (variable == nullptr || !variable->Is<ReaderHolder>()) continue;
    const std::vector<std::string> outputs = OutputArguments(*op, "Out");
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (AreIds(outputs[i], ops)) variable->GetMutable<ReaderHolder>()->MarkIds(i);
    }
  }
}

}  // namespace millrace
