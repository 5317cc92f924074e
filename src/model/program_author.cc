#include "model/program_author.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "core/edit_distance.h"
#include "framework/op_check.h"

namespace millrace {

Result<std::unique_ptr<ProgramAuthor>> ProgramAuthor::Create(const OpRegistry& registry) {
  std::unique_ptr<ProgramAuthor> author(new ProgramAuthor(registry));
  MR_ASSIGN(BlockBuilder main, BlockBuilder::Create(*FirstBlock(author->main_), registry));
  MR_ASSIGN(BlockBuilder startup, BlockBuilder::Create(*FirstBlock(author->startup_), registry));
  author->lowering_ = std::make_unique<Lowering>(author->model_, author->schema_, std::move(main), std::move(startup));
  return author;
}

void ProgramAuthor::set_registry(const OpRegistry& registry) {
  registry_ = &registry;
  lowering_->main().set_registry(registry);
  lowering_->startup().set_registry(registry);
}

Status ProgramAuthor::TakeMistakes() {
  Status status = lowering_->ToStatus();
  lowering_->ForgetMistakes();
  return status;
}

Status ProgramAuthor::AddData(const std::string& name, const VarMeta& meta) {
  if (name.empty()) return InvalidConfig("data: the variable needs a name, that of its slot");
  if (Has(name)) return InvalidConfig("data: there is a variable \"" + name + "\" already");
  if (meta.dims.too_many()) return InvalidConfig("data \"" + name + "\": a tensor has at most 8 axes");
  for (const int64_t size : meta.dims.sizes()) {
    if (size == -1 || size > 0) continue;
    return InvalidConfig("data \"" + name + "\": a size is -1 (any) or positive; " + meta.dims.ToString());
  }
  VarDesc& var = lowering_->main().Declare(name, meta);
  var.set_stop_gradient(true);
  var.set_need_check_feed(true);
  return Status::Ok();
}

Status ProgramAuthor::AddParameter(const std::string& name, const Dims& dims, const Initializer& init, bool trainable) {
  for (const int64_t size : dims.sizes()) {
    if (size < 1) return InvalidConfig("parameter \"" + name + "\": sizes must be positive; " + dims.ToString());
  }
  if (dims.rank() == 0 || dims.too_many()) {
    return InvalidConfig("parameter \"" + name + "\": it needs 1 to 8 axes; " + dims.ToString());
  }
  lowering_->AddParameter("parameter \"" + name + "\"", name, dims, init, true);
  MR_TRY(TakeMistakes());
  if (trainable) return Status::Ok();
  for (VarDesc& var : *main_.mutable_blocks(0)->mutable_vars()) {
    if (var.name() == name) var.set_stop_gradient(true);
  }
  return Status::Ok();
}

Status ProgramAuthor::SetRule(const std::string& name, const ParameterRule& rule) {
  const std::string where = "parameter \"" + name + "\"";
  if (const ParameterRule* known = lowering_->RuleOf(name); known != nullptr) {
    if (google::protobuf::util::MessageDifferencer::Equals(*known, rule)) return Status::Ok();
    return InvalidConfig(where + " has other rules already: " + known->ShortDebugString());
  }
  if (!(rule.rate() >= 0)) {
    lowering_->Problem(where, "rate: must not be negative; " + std::to_string(rule.rate()));
  }
  if (rule.clip().has_global_norm()) {
    lowering_->Problem(where, "clip: global_norm is of all gradients; give it to the optimizer");
  }
  CheckGradientSettings(*lowering_, where, rule.regularization(), rule.has_clip() ? &rule.clip() : nullptr);
  MR_TRY(TakeMistakes());
  lowering_->SetRule(name, rule);
  return Status::Ok();
}

Status ProgramAuthor::AddState(const std::string& name, DType dtype, const Dims& dims, float value) {
  lowering_->AddState("variable \"" + name + "\"", name, dims, value, dtype);
  return TakeMistakes();
}

Status ProgramAuthor::AddTable(const TableDesc& table) {
  for (const TableDesc& known : model_.table()) {
    if (known.name() != table.name()) continue;
    if (google::protobuf::util::MessageDifferencer::Equals(known, table)) return Status::Ok();
    return InvalidConfig("table \"" + table.name() + "\" is there already, as: " + TableText(known));
  }
  *model_.add_table() = table;
  CheckTables(*lowering_);
  Status status = TakeMistakes();
  if (status.ok()) {
    lowering_->AddTable(table);
    status = TakeMistakes();
  }
  if (!status.ok()) model_.mutable_table()->RemoveLast();
  return status;
}

Status ProgramAuthor::LookUp(const std::string& ids, const std::string& table, const std::string& out) {
  for (const TableDesc& known : model_.table()) {
    if (known.name() == table) return Append(LookupOp(ids, known, out));
  }
  return Internal("LookUp in a table \"" + table + "\" that was not added");
}

Status ProgramAuthor::AddVariable(const std::string& name, const VarMeta& meta) {
  if (Has(name)) return InvalidConfig("there is a variable \"" + name + "\" already");
  lowering_->main().Declare(name, meta);
  return Status::Ok();
}

Status ProgramAuthor::AddReader(OpDesc make) {
  std::vector<std::string> problems;
  const std::vector<std::string> made = OutputArguments(make, "Out");
  if (made.size() != 1) return InvalidConfig(make.type() + ": makes one reader, its output Out");
  if (Has(made[0])) return InvalidConfig("there is a variable \"" + made[0] + "\" already");
  CheckOp(make.type(), make, lowering_->startup().vars(), *registry_, &problems);
  if (!problems.empty()) return InvalidConfig(problems[0]);
  VarMeta meta;
  meta.kind = VarType::READER;
  meta.persistable = true;
  lowering_->main().Declare(made[0], meta);
  lowering_->startup().Declare(made[0], meta);
  return lowering_->startup().Append(std::move(make), OpRole::kForward);
}

Status ProgramAuthor::Append(OpDesc op) {
  std::vector<std::string> problems;
  CheckOp(op.type(), op, lowering_->main().vars(), *registry_, &problems);
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "\n") + problem;
  if (!problems.empty()) return InvalidConfig(text);
  const OpInfo& info = *registry_->Find(op.type());
  if (info.is_gradient || info.is_optimizer || info.is_fused) {
    return InvalidConfig(op.type() + ": gradients and updates are made by an optimizer's minimize");
  }
  return lowering_->main().Append(std::move(op), OpRole::kForward);
}

void ProgramAuthor::FinishTables() {
  for (const TableDesc& table : model_.table()) {
    if (table.has_vocabulary()) continue;
    const std::string text = TableText(WithDefaults(table, model_));
    for (BlockDesc* block : {main_.mutable_blocks(0), startup_.mutable_blocks(0)}) {
      for (VarDesc& var : *block->mutable_vars()) {
        if (var.name() == table.name()) var.mutable_attrs(0)->set_s(text);
      }
      for (OpDesc& op : *block->mutable_ops()) {
        const bool makes = op.type() == "create_sparse_table" && OutputArguments(op, "Out")[0] == table.name();
        if (makes) SetAttr(op, "table", text);
      }
    }
  }
}

Status ProgramAuthor::StopGradients(const Trained& trained) {
  for (const std::vector<std::string>* names : {&trained.only, &trained.without}) {
    for (const std::string& name : *names) MR_TRY(Find(name).status());
  }
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (VarDesc& var : *main_.mutable_blocks(0)->mutable_vars()) {
    const bool left_out = !trained.only.empty() && var.is_parameter() && !has(trained.only, var.name());
    if (left_out || has(trained.without, var.name())) var.set_stop_gradient(true);
  }
  return Status::Ok();
}

Status ProgramAuthor::AppendMinimization(const std::string& loss, const Trained& trained,
                                         std::vector<ParamGrad>* gradients) {
  CheckOptimizers(*lowering_);
  MR_TRY(TakeMistakes());
  MR_TRY(StopGradients(trained));
  FinishTables();
  for (OpDesc& op : *main_.mutable_blocks(0)->mutable_ops()) {
    for (const OpDesc::Var& output : op.outputs()) {
      const auto& names = output.arguments();
      const bool makes_loss = std::find(names.begin(), names.end(), loss) != names.end();
      if (makes_loss) SetAttr(op, "op_role", static_cast<int64_t>(OpRole::kLoss));
    }
  }
  MR_ASSIGN(*gradients, AppendBackward(main_, loss, *registry_));
  MR_TRY(lowering_->Reload());
  AppendUpdates(*lowering_, *gradients);
  return TakeMistakes();
}

Result<std::vector<ParamGrad>> ProgramAuthor::Minimize(const std::string& loss, const OptimizerDesc& optimizer,
                                                       const Trained& trained) {
  if (is_minimized_) return InvalidConfig("minimize was called already: a program has one loss");
  MR_ASSIGN(const VarMeta meta, Find(loss));
  if (meta.dtype != DType::kFloat32 || meta.dims.numel() != 1) {
    return InvalidConfig("minimize: the loss must be one float; \"" + loss + "\" is " + meta.dims.ToString() +
                         "; take its mean first");
  }
  const ProgramDesc main_before = main_;
  const ProgramDesc startup_before = startup_;
  *model_.mutable_optimizer() = optimizer;
  std::vector<ParamGrad> gradients;
  if (Status status = AppendMinimization(loss, trained, &gradients); !status.ok()) {
    // Copied into the blocks that builders view.
    *main_.mutable_blocks(0) = main_before.blocks(0);
    *startup_.mutable_blocks(0) = startup_before.blocks(0);
    model_.clear_optimizer();
    MR_TRY(lowering_->Reload());
    return status;
  }
  is_minimized_ = true;
  return gradients;
}

std::vector<std::string> ProgramAuthor::Parameters() const {
  std::vector<std::string> names;
  for (const VarDesc& var : main_.blocks(0).vars()) {
    if (var.is_parameter()) names.push_back(var.name());
  }
  return names;
}

Result<VarMeta> ProgramAuthor::Find(const std::string& name) const {
  const VarMetas& vars = lowering_->main().vars();
  if (const auto it = vars.find(name); it != vars.end()) return it->second;
  std::vector<std::string_view> names;
  for (const auto& [known, meta] : vars) names.push_back(known);
  return NotFound("the program has no variable \"" + name + "\"" + DidYouMean(name, names));
}

}  // namespace millrace
