#include <algorithm>
#include <deque>

#include "model/lowering.h"
#include "program/ctr_accessor.h"

namespace millrace {
namespace {

bool Reads(const OpDesc& op, const std::string& name) {
  return std::any_of(op.inputs().begin(), op.inputs().end(), [&name](const OpDesc::Var& input) {
    return std::find(input.arguments().begin(), input.arguments().end(), name) != input.arguments().end();
  });
}

bool IsSum(const OpDesc& op) {
  const OpDesc::Attr* pool = FindAttr(op, "pooltype");
  std::string type = pool == nullptr ? "AVERAGE" : pool->s();
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return type == "SUM";
}

/// Calls visit(op) for the operators of all blocks.
template <class Visit>
void ForEachOp(const ProgramDesc& program, const Visit& visit) {
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) visit(op);
  }
}

/// What is wrong with how an operator reads rows that begin with counts; empty: nothing.
std::string WrongReader(const OpDesc& op) {
  if (op.type().ends_with("_grad")) return "";
  if (op.type() == "cvm") {
    return InputArguments(op, "CVM").empty() ? "its cvm has no CVM, the shows and clicks of the batch" : "";
  }
  if (op.type() == "sequence_pool") {
    return IsSum(op) ? "" : "sequence_pool takes no sum of them: pool_type \"sum\", as shows and clicks add up";
  }
  return "\"" + op.type() +
         "\" reads them: put continuous_value_model behind the embedding, or behind its sequence_pool";
}

}  // namespace

void CheckCounts(Lowering& lowering, const ProgramDesc& main) {
  for (const TableDesc& table : lowering.model().table()) {
    if (!table.has_accessor() || HidesCounts(table.accessor())) continue;
    std::deque<std::string> rows;
    ForEachOp(main, [&](const OpDesc& op) {
      const std::vector<std::string> tables = InputArguments(op, "W");
      if (std::find(tables.begin(), tables.end(), table.name()) == tables.end()) return;
      for (const std::string& out : OutputArguments(op, "Out")) rows.push_back(out);
    });
    while (!rows.empty()) {
      const std::string name = rows.front();
      rows.pop_front();
      ForEachOp(main, [&](const OpDesc& op) {
        if (!Reads(op, name)) return;
        const std::string wrong = WrongReader(op);
        if (!wrong.empty()) {
          lowering.Problem(
              "table \"" + table.name() + "\"",
              "rows of an accessor begin with shows and clicks, which the gradient of cvm brings, and " + wrong);
        } else if (op.type() == "sequence_pool") {
          for (const std::string& out : OutputArguments(op, "Out")) rows.push_back(out);
        }
      });
    }
  }
}

}  // namespace millrace
