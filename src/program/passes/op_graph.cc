#include "program/passes/op_graph.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

/// The one variable bound to a parameter; a list may be long, and is not copied.
std::string OnlyArgument(const google::protobuf::RepeatedPtrField<OpDesc::Var>& bindings, std::string_view parameter) {
  for (const OpDesc::Var& binding : bindings) {
    if (binding.parameter() != parameter) continue;
    return binding.arguments_size() == 1 && binding.arguments(0) != kEmptyVar ? binding.arguments(0) : "";
  }
  return "";
}

}  // namespace

OpGraph::OpGraph(OpList ops, const VarMetas& vars, const std::vector<std::string>& fetches)
    : ops_(std::move(ops).shared()), vars_(&vars), fetches_(fetches.begin(), fetches.end()) {
  for (int i = 0; i < size(); ++i) AddToIndex(i);
}

const VarMeta* OpGraph::FindMeta(std::string_view name) const {
  const auto it = vars_->find(name);
  return it == vars_->end() ? nullptr : &it->second;
}

std::vector<int> OpGraph::UsersIn(const Index& index, std::string_view name) {
  const auto it = index.find(name);
  return it == index.end() ? std::vector<int>() : std::vector<int>(it->second.begin(), it->second.end());
}

std::vector<int> OpGraph::Readers(std::string_view name) const { return UsersIn(readers_, name); }

std::vector<int> OpGraph::Writers(std::string_view name) const { return UsersIn(writers_, name); }

int OpGraph::OnlyWriter(std::string_view name) const {
  const auto it = writers_.find(name);
  return it == writers_.end() || it->second.size() != 1 ? -1 : *it->second.begin();
}

int OpGraph::ReaderOfType(std::string_view name, std::string_view type) const {
  const auto readers = readers_.find(name);
  if (readers == readers_.end()) return -1;
  int found = -1;
  for (const int i : readers->second) {
    if (op(i).type() != type) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

bool OpGraph::IsKept(std::string_view name) const {
  const VarMeta* meta = FindMeta(name);
  return fetches_.contains(name) || (meta != nullptr && meta->persistable);
}

bool OpGraph::IsPrivate(std::string_view name, std::vector<int> readers) const {
  std::erase(readers, -1);
  std::sort(readers.begin(), readers.end());
  if (IsKept(name) || OnlyWriter(name) < 0) return false;
  const auto found = readers_.find(name);
  if (found == readers_.end()) return readers.empty();
  return std::equal(found->second.begin(), found->second.end(), readers.begin(), readers.end());
}

void OpGraph::Replace(int i, OpDesc op) {
  DropFromIndex(i);
  ops_[static_cast<size_t>(i)] = std::make_shared<const OpDesc>(std::move(op));
  AddToIndex(i);
}

void OpGraph::Remove(int i) {
  DropFromIndex(i);
  ops_[static_cast<size_t>(i)] = OpList::Shared(OpList::Shared(), &OpDesc::default_instance());
}

void OpGraph::AddToIndex(int i) {
  const auto add = [i](Index& index, const auto& bindings) {
    for (const OpDesc::Var& binding : bindings) {
      for (const std::string& name : binding.arguments()) {
        if (name == kEmptyVar) continue;
        index[name].insert(i);
      }
    }
  };
  add(readers_, op(i).inputs());
  add(writers_, op(i).outputs());
}

void OpGraph::DropFromIndex(int i) {
  const auto drop = [i](Index& index, const auto& bindings) {
    for (const OpDesc::Var& binding : bindings) {
      for (const std::string& name : binding.arguments()) {
        if (const auto it = index.find(name); it != index.end()) it->second.erase(i);
      }
    }
  };
  drop(readers_, op(i).inputs());
  drop(writers_, op(i).outputs());
}

OpList OpGraph::Take() && {
  std::erase_if(ops_, [](const OpList::Shared& op) { return op->type().empty(); });
  return OpList(std::move(ops_));
}

std::string OnlyInput(const OpDesc& op, std::string_view parameter) { return OnlyArgument(op.inputs(), parameter); }

std::string OnlyOutput(const OpDesc& op, std::string_view parameter) { return OnlyArgument(op.outputs(), parameter); }

int64_t IntAttr(const OpDesc& op, std::string_view name, int64_t otherwise) {
  const OpDesc::Attr* attr = FindAttr(op, name);
  if (attr == nullptr) return otherwise;
  return attr->type() == LONG ? attr->l() : attr->type() == BOOLEAN ? static_cast<int64_t>(attr->b()) : attr->i();
}

float FloatAttr(const OpDesc& op, std::string_view name, float otherwise) {
  const OpDesc::Attr* attr = FindAttr(op, name);
  if (attr == nullptr) return otherwise;
  return attr->type() == FLOAT ? attr->f() : static_cast<float>(IntAttr(op, name, 0));
}

std::string StringAttr(const OpDesc& op, std::string_view name, std::string_view otherwise) {
  const OpDesc::Attr* attr = FindAttr(op, name);
  return attr == nullptr ? std::string(otherwise) : attr->s();
}

std::vector<int64_t> IntsAttr(const OpDesc& op, std::string_view name) {
  const OpDesc::Attr* attr = FindAttr(op, name);
  if (attr == nullptr) return {};
  std::vector<int64_t> values(attr->ints().begin(), attr->ints().end());
  values.insert(values.end(), attr->longs().begin(), attr->longs().end());
  return values;
}

std::string RowsName(std::string_view out) { return std::string(out) + "@ROWS"; }

}  // namespace millrace
