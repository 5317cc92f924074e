#include "program/block_builder.h"

#include <glog/logging.h>

#include <set>
#include <utility>
#include <vector>

#include "framework.pb.h"
#include "program/var_meta.h"

namespace millrace {
namespace {

void SetVarType(const VarMeta& meta, VarDesc* var) {
  VarType* type = var->mutable_type();
  type->set_type(meta.kind);
  if (meta.kind == VarType::STEP_SCOPES || meta.kind == VarType::RAW) return;
  const bool is_rows = meta.kind == VarType::SELECTED_ROWS;
  VarType::TensorDesc* tensor = is_rows ? type->mutable_selected_rows() : type->mutable_lod_tensor()->mutable_tensor();
  tensor->set_data_type(ToVarType(meta.dtype));
  tensor->clear_dims();
  for (const int64_t dim : meta.dims.sizes()) tensor->add_dims(dim);
  if (!is_rows && meta.lod_level > 0) type->mutable_lod_tensor()->set_lod_level(meta.lod_level);
  var->set_persistable(meta.persistable);
}

}  // namespace

bool IsAuthored(const OpDesc& op) {
  const OpDesc::Attr* role = FindAttr(op, "op_role");
  return role == nullptr || role->i() == static_cast<int64_t>(OpRole::kForward) ||
         role->i() == static_cast<int64_t>(OpRole::kLoss);
}

Result<BlockBuilder> BlockBuilder::Create(BlockDesc& block, const OpRegistry& registry) {
  BlockBuilder builder(block, registry);
  for (const VarDesc& var : block.vars()) {
    MR_ASSIGN(VarMeta meta, ToMeta(var));
    builder.vars_[var.name()] = meta;
  }
  return builder;
}

VarDesc& BlockBuilder::Declare(std::string_view name, const VarMeta& meta) {
  const bool added = vars_.emplace(std::string(name), meta).second;
  CHECK(added) << "variable " << name << " is declared twice";
  return AddVar(name, meta);
}

VarDesc& BlockBuilder::AddVar(std::string_view name, const VarMeta& meta) {
  VarDesc* var = block_->add_vars();
  var->set_name(std::string(name));
  SetVarType(meta, var);
  return *var;
}

Status BlockBuilder::Append(OpDesc op, OpRole role) {
  const OpInfo* info = registry_->Find(op.type());
  if (info == nullptr) {
    return InvalidConfig("no operator \"" + op.type() + "\"" + registry_->Hint(op.type()));
  }
  SetAttr(op, "op_role", static_cast<int64_t>(role));
  // What is declared stays as it was declared, whatever the rule says of it.
  std::vector<std::pair<VarMeta*, VarMeta>> declared;
  std::vector<const std::string*> made;
  ForEachArgument(op.outputs(), [&](const std::string& name) {
    if (const auto it = vars_.find(name); it != vars_.end()) {
      declared.emplace_back(&it->second, it->second);
    } else {
      made.push_back(&name);
    }
  });
  Status inferred = InferShapes(OpView(op, *info), vars_, *registry_);
  for (const auto& [meta, before] : declared) *meta = before;
  if (!inferred.ok()) {
    for (const std::string* name : made) vars_.erase(*name);
    return inferred;
  }
  std::set<std::string_view> seen;  // a list may name a variable twice
  for (const std::string* name : made) {
    if (seen.insert(*name).second) AddVar(*name, vars_[*name]);
  }
  *block_->add_ops() = std::move(op);
  return Status::Ok();
}

}  // namespace millrace
