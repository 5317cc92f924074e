#include "program/passes/op_graph.h"

#include <algorithm>
#include <iterator>
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

OpGraph::OpGraph(OpList ops, const VarMetas& vars, const std::vector<std::string>& fetches, std::stop_token stop)
    : ops_(std::move(ops).shared()), vars_(&vars), fetches_(fetches.begin(), fetches.end()), stop_(std::move(stop)) {
  for (int i = 0; i < size() && !is_stopped(); ++i) AddToIndex(i);
}

const VarMeta* OpGraph::FindMeta(std::string_view name) const {
  const auto it = vars_->find(name);
  return it == vars_->end() ? nullptr : &it->second;
}

const std::vector<int>& OpGraph::UsersIn(Index& index, std::string_view name) const {
  static const std::vector<int> kNone;
  const size_t number = names_.Find(name);
  if (number >= index.size()) return kNone;
  Users& users = index[number];
  if (!users.is_ascending) std::sort(users.all.begin(), users.all.end());
  users.is_ascending = true;
  if (!users.dropped.empty()) {
    std::sort(users.dropped.begin(), users.dropped.end());
    std::vector<int> left;
    std::set_difference(users.all.begin(), users.all.end(), users.dropped.begin(), users.dropped.end(),
                        std::back_inserter(left));
    users.all = std::move(left);
    users.dropped.clear();
  }
  return users.all;
}

std::vector<int> OpGraph::Readers(std::string_view name) const { return UsersIn(readers_, name); }

std::vector<int> OpGraph::Writers(std::string_view name) const { return UsersIn(writers_, name); }

int OpGraph::OnlyWriter(std::string_view name) const {
  const std::vector<int>& writers = UsersIn(writers_, name);
  return writers.size() == 1 ? writers[0] : -1;
}

int OpGraph::ReaderOfType(std::string_view name, std::string_view type) const {
  int found = -1;
  for (const int i : UsersIn(readers_, name)) {
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
  return UsersIn(readers_, name) == readers;
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
  const auto add = [&](Index& index, const auto& bindings) {
    for (const OpDesc::Var& binding : bindings) {
      for (const std::string& name : binding.arguments()) {
        if (name == kEmptyVar) continue;
        const size_t number = names_.Add(name);
        if (number >= index.size()) index.resize(number + 1);
        Users& users = index[number];
        users.is_ascending = users.is_ascending && (users.all.empty() || users.all.back() <= i);
        users.all.push_back(i);
      }
    }
  };
  add(readers_, op(i).inputs());
  add(writers_, op(i).outputs());
}

void OpGraph::DropFromIndex(int i) {
  const auto drop = [&](Index& index, const auto& bindings) {
    for (const OpDesc::Var& binding : bindings) {
      for (const std::string& name : binding.arguments()) {
        if (name != kEmptyVar) index[names_.Find(name)].dropped.push_back(i);
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
