#include "program/feed_fetch.h"

#include <algorithm>
#include <map>

#include "program/op_registry.h"

namespace millrace {
namespace {

constexpr char kFeed[] = "feed";
constexpr char kFetch[] = "fetch";

/// Variables by column.
using Columns = std::map<int64_t, std::string>;

Status TakeColumn(const OpDesc& op, const std::vector<std::string>& variables, Columns& columns) {
  const OpDesc::Attr* column = FindAttr(op, "col");
  if (variables.size() != 1 || column == nullptr) {
    return InvalidConfig("an operator " + op.type() + " has no " + (column == nullptr ? "column" : "variable"));
  }
  if (columns.emplace(column->i(), variables[0]).second) return Status::Ok();
  return InvalidConfig("two operators " + op.type() + " have column " + std::to_string(column->i()));
}

std::vector<std::string> InOrder(const Columns& columns) {
  std::vector<std::string> names;
  for (const auto& [column, name] : columns) names.push_back(name);
  return names;
}

void AddHolder(const char* name, VarType::Type type, BlockDesc& block) {
  VarDesc* var = block.add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(type);
  var->set_persistable(true);
}

OpDesc ColumnOp(const char* type, const std::string& from, const std::string& to, size_t column) {
  OpDesc op;
  op.set_type(type);
  SetInput(op, "X", {from});
  SetOutput(op, "Out", {to});
  SetAttr(op, "col", static_cast<int64_t>(column));
  return op;
}

}  // namespace

Result<FeedFetch> TakeFeedFetch(ProgramDesc& program) {
  BlockDesc& block = *program.mutable_blocks(0);
  Columns feeds;
  Columns fetches;
  for (const OpDesc& op : block.ops()) {
    if (op.type() == kFeed) MR_TRY(TakeColumn(op, OutputArguments(op, "Out"), feeds));
    if (op.type() == kFetch) MR_TRY(TakeColumn(op, InputArguments(op, "X"), fetches));
  }
  auto* ops = block.mutable_ops();
  ops->erase(std::remove_if(ops->begin(), ops->end(),
                            [](const OpDesc& op) { return op.type() == kFeed || op.type() == kFetch; }),
             ops->end());
  auto* vars = block.mutable_vars();
  vars->erase(std::remove_if(vars->begin(), vars->end(),
                             [](const VarDesc& var) {
                               const VarType::Type type = var.type().type();
                               return type == VarType::FEED_MINIBATCH || type == VarType::FETCH_LIST;
                             }),
              vars->end());
  return FeedFetch{InOrder(feeds), InOrder(fetches)};
}

void AddFeedFetch(const FeedFetch& lists, ProgramDesc& program) {
  BlockDesc& block = *program.mutable_blocks(0);
  AddHolder(kFeed, VarType::FEED_MINIBATCH, block);
  AddHolder(kFetch, VarType::FETCH_LIST, block);
  std::vector<OpDesc> ops;
  for (const std::string& name : lists.feeds) ops.push_back(ColumnOp(kFeed, kFeed, name, ops.size()));
  ops.insert(ops.end(), block.ops().begin(), block.ops().end());
  for (size_t i = 0; i < lists.fetches.size(); ++i) ops.push_back(ColumnOp(kFetch, lists.fetches[i], kFetch, i));
  block.clear_ops();
  for (OpDesc& op : ops) *block.add_ops() = std::move(op);
}

}  // namespace millrace
