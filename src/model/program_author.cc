#include "model/program_author.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/edit_distance.h"
#include "core/numbers.h"
#include "program/ctr_accessor.h"
#include "program/op_check.h"
#include "program/optimizer_rule.h"

namespace millrace {

/// A block that is written, and what was there before it.
struct ProgramAuthor::OpenBlock {
  OpenBlock(int number, BlockBuilder made) : index(number), builder(std::move(made)) {}

  int index;
  BlockBuilder builder;
  Before before;
  VarMetas closed_before;
  bool was_minimized = false;
};

ProgramAuthor::ProgramAuthor(const OpRegistry& registry) : registry_(&registry) {}
ProgramAuthor::~ProgramAuthor() = default;

int ProgramAuthor::Current() const { return open_.empty() ? 0 : open_.back()->index; }

std::vector<int> ProgramAuthor::OpenBlocks() const {
  std::vector<int> blocks;
  for (auto open = open_.rbegin(); open != open_.rend(); ++open) blocks.push_back((*open)->index);
  blocks.push_back(0);
  return blocks;
}

Result<std::unique_ptr<ProgramAuthor>> ProgramAuthor::Create(const OpRegistry& registry) {
  std::unique_ptr<ProgramAuthor> author(new ProgramAuthor(registry));
  MR_ASSIGN(BlockBuilder main, BlockBuilder::Create(*FirstBlock(author->main_), registry));
  MR_ASSIGN(BlockBuilder startup, BlockBuilder::Create(*FirstBlock(author->startup_), registry));
  author->lowering_ = std::make_unique<Lowering>(author->model_, author->schema_, author->parts_, ModelForm::kPaddle,
                                                 std::move(main), std::move(startup));
  return author;
}

void ProgramAuthor::set_registry(const OpRegistry& registry) {
  registry_ = &registry;
  lowering_->main().set_registry(registry);
  lowering_->root().set_registry(registry);
  lowering_->startup().set_registry(registry);
  for (const auto& block : open_) block->builder.set_registry(registry);
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
  VarDesc& var = lowering_->root().Declare(name, meta);
  var.set_stop_gradient(true);
  var.set_need_check_feed(true);
  lowering_->main().See({{name, meta}});
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
  if (rule.clip().has_global_norm()) {
    lowering_->Problem(where, "clip: global_norm is of all gradients; give it to the optimizer");
  }
  (void)lowering_->CheckRanges(where, "", rule);
  CheckClip(*lowering_, where, "clip", rule.has_clip() ? &rule.clip() : nullptr);
  MR_TRY(TakeMistakes());
  lowering_->SetRule(name, rule);
  return Status::Ok();
}

Status ProgramAuthor::SetInitialValues(const std::string& name, const std::vector<float>& values) {
  MR_ASSIGN(const VarMeta meta, Find(name));
  const std::string where = "parameter \"" + name + "\"";
  if (meta.kind != VarType::LOD_TENSOR) {
    return InvalidConfig(where +
                         ": a table that grows has no rows to fill before their ids come; give it a vocabulary");
  }
  if (meta.dims.numel() != static_cast<int64_t>(values.size())) {
    return InvalidConfig(where + " " + meta.dims.ToString() + ": " + std::to_string(values.size()) + " initial values");
  }
  for (OpDesc& op : *startup_.mutable_blocks(0)->mutable_ops()) {
    if (OutputArguments(op, "Out") != std::vector<std::string>{name}) continue;
    const auto sizes = meta.dims.sizes();
    op = MakeOp("assign_value", {}, {{"Out", {name}}},
                {{"shape", std::vector<int64_t>(sizes.begin(), sizes.end())},
                 {"dtype", static_cast<int64_t>(VarType::FP32)},
                 {"fp32_values", values}});
    return Status::Ok();
  }
  return Internal("nothing fills \"" + name + "\"");
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

bool ProgramAuthor::MaySpread(const TableDesc& table) const {
  const auto init = table.init().kind_case();
  if (!table.has_vocabulary() || table.has_out_of_range() || init == Initializer::kCustom) return false;
  const ParameterRule* const rule = lowering_->RuleOf(table.name());
  if (rule != nullptr && rule->has_regularization()) return false;
  for (const VarDesc& var : main_.blocks(0).vars()) {
    if (var.name() == table.name() && var.stop_gradient()) return false;
  }
  for (const OpDesc& op : startup_.blocks(0).ops()) {
    if (op.type() == "assign_value" && OutputArguments(op, "Out") == std::vector<std::string>{table.name()}) {
      return false;
    }
  }
  bool only_lookups = true;
  for (const BlockDesc& block : main_.blocks()) {
    for (const OpDesc& op : block.ops()) {
      if (op.type() == "lookup_table") continue;
      ForEachArgument(op.inputs(), [&](const std::string& name) { only_lookups &= name != table.name(); });
    }
  }
  return only_lookups;
}

Result<bool> ProgramAuthor::Spread(const std::string& table, const OptimizerDesc& optimizer) {
  if (is_minimized_ || !open_.empty()) return false;
  auto* const tables = model_.mutable_table();
  const auto found =
      std::find_if(tables->begin(), tables->end(), [&](const TableDesc& known) { return known.name() == table; });
  if (found == tables->end()) return Internal("Spread of a table \"" + table + "\" that was not added");
  const OptimizerDesc& rule = found->has_optimizer() ? found->optimizer() : optimizer;
  if (!WhyNotForGrowingTable(rule).empty() || !MaySpread(*found)) return false;
  const auto sides = static_cast<double>(found->vocabulary() + found->dim());
  const auto init = found->init().kind_case();
  if (init == Initializer::kXavier) found->mutable_init()->set_uniform(static_cast<float>(std::sqrt(6 / sides)));
  if (init == Initializer::kXavierNormal) found->mutable_init()->set_normal(static_cast<float>(std::sqrt(2 / sides)));
  found->clear_vocabulary();
  for (BlockDesc* block : {main_.mutable_blocks(0), startup_.mutable_blocks(0)}) {
    auto* const vars = block->mutable_vars();
    vars->erase(std::remove_if(vars->begin(), vars->end(), [&](const VarDesc& var) { return var.name() == table; }),
                vars->end());
  }
  auto* const ops = startup_.mutable_blocks(0)->mutable_ops();
  const auto makes = [&](const OpDesc& op) { return OutputArguments(op, "Out") == std::vector<std::string>{table}; };
  ops->erase(std::remove_if(ops->begin(), ops->end(), makes), ops->end());
  Lowering::Known known = lowering_->known();
  std::erase_if(known.tables, [&](const TableDesc& one) { return one.name() == table; });
  lowering_->set_known(std::move(known));
  MR_TRY(Reload());
  lowering_->AddTable(*found);
  MR_TRY(TakeMistakes());
  spread_.insert(table);
  return true;
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
  lowering_->root().Declare(made[0], meta);
  lowering_->main().See({{made[0], meta}});
  lowering_->startup().Declare(made[0], meta);
  return lowering_->startup().Append(std::move(make), OpRole::kForward);
}

namespace {

/// Whether tensors of one may be tensors of the other: -1 is any size, and no axes say nothing.
bool Fits(const Dims& made, const Dims& declared) {
  if (made.rank() == 0 || declared.rank() == 0) return true;
  if (made.rank() != declared.rank()) return false;
  for (int axis = 0; axis < made.rank(); ++axis) {
    if (made[axis] >= 0 && declared[axis] >= 0 && made[axis] != declared[axis]) return false;
  }
  return true;
}

/// A variable that is there keeps its type and its sizes, which operators that read it were checked by.
Status CheckOverwritten(const OpDesc& op, const VarMetas& vars, const OpRegistry& registry) {
  VarMetas inferred;
  bool overwrites = false;
  for (const auto* bindings : {&op.inputs(), &op.outputs()}) {
    for (const OpDesc::Var& binding : *bindings) {
      for (const std::string& name : binding.arguments()) {
        const auto known = vars.find(name);
        if (known == vars.end()) continue;
        inferred.insert(*known);
        overwrites = overwrites || bindings == &op.outputs();
      }
    }
  }
  if (!overwrites) return Status::Ok();
  MR_TRY(InferShapes(OpView(op, *registry.Find(op.type())), inferred, registry));
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      const auto known = vars.find(name);
      if (known == vars.end() || known->second.kind != VarType::LOD_TENSOR) continue;
      const VarMeta& made = inferred[name];
      if (made.dtype == known->second.dtype && Fits(made.dims, known->second.dims)) continue;
      return InvalidConfig(op.type() + ": writes " + std::string(DTypeName(made.dtype)) + " " + made.dims.ToString() +
                           " to \"" + name + "\", which is " + std::string(DTypeName(known->second.dtype)) + " " +
                           known->second.dims.ToString());
    }
  }
  return Status::Ok();
}

void AddNames(const google::protobuf::RepeatedPtrField<OpDesc::Var>& bindings, const std::set<std::string>& own,
              std::set<std::string>* names) {
  for (const OpDesc::Var& binding : bindings) {
    for (const std::string& name : binding.arguments()) {
      if (name != kEmptyVar && !own.contains(name)) names->insert(name);
    }
  }
}

}  // namespace

Status ProgramAuthor::BeginBlock() {
  Before before = Now();
  const int index = main_.blocks_size();
  BlockDesc* block = main_.add_blocks();
  block->set_idx(index);
  block->set_parent_idx(Current());
  MR_ASSIGN(BlockBuilder builder, BlockBuilder::Create(*block, *registry_));
  builder.See(lowering_->main().vars());
  auto open = std::make_unique<OpenBlock>(index, std::move(builder));
  open->before = std::move(before);
  open->closed_before = closed_;
  open->was_minimized = is_minimized_;
  lowering_->EnterBlock(&open->builder);
  open_.push_back(std::move(open));
  return Status::Ok();
}

Status ProgramAuthor::EndBlock(OpDesc op, const std::vector<std::string>& exports) {
  if (open_.empty()) return Internal("EndBlock without BeginBlock");
  const OpenBlock& ended = *open_.back();
  BlockDesc& block = *main_.mutable_blocks(ended.index);
  if (block.ops().empty()) return InvalidConfig(op.type() + ": its block has no operators");
  std::set<std::string> own;
  for (const VarDesc& var : block.vars()) {
    if (std::find(exports.begin(), exports.end(), var.name()) == exports.end()) own.insert(var.name());
  }
  std::set<std::string> conditions;
  AddNames(op.inputs(), {}, &conditions);
  std::set<std::string> read;
  std::set<std::string> written;
  for (const OpDesc& inner : block.ops()) {
    AddNames(inner.inputs(), own, &read);
    AddNames(inner.outputs(), own, &written);
  }
  const bool loops = op.type() == "while";
  for (const std::string& condition : conditions) {
    if (loops && !written.contains(condition)) {
      return InvalidConfig(
          "while: nothing in its block writes the condition \"" + condition +
          "\", so that it would never end; write it at the end of the block: less_than(x, y, cond=...)");
    }
    read.erase(condition);
  }
  if (loops) {
    read.insert(written.begin(), written.end());
    for (const std::string& condition : conditions) read.erase(condition);
  }
  SetOutput(op, "Out", {written.begin(), written.end()});
  BlockBuilder* around = open_.size() > 1 ? &open_[open_.size() - 2]->builder : &lowering_->root();
  VarMeta scopes;
  scopes.kind = VarType::STEP_SCOPES;
  const std::string scopes_name = op.type() + "_" + std::to_string(ended.index) + ".scopes";
  SetOutput(op, loops ? "StepScopes" : "Scope", {scopes_name});
  OpDesc::Attr* sub_block = op.add_attrs();
  sub_block->set_name("sub_block");
  sub_block->set_type(BLOCK);
  sub_block->set_block_idx(ended.index);
  if (around->Has(scopes_name)) return InvalidConfig("there is a variable \"" + scopes_name + "\" already");
  around->See(lowering_->root().vars());
  around->Declare(scopes_name, scopes);
  for (const std::string& name : exports) {
    const VarMeta meta = ended.builder.vars().find(name)->second;
    around->Declare(name, meta);
    read.erase(name);
  }
  SetInput(op, loops ? "X" : "Input", {read.begin(), read.end()});
  auto* vars = block.mutable_vars();
  vars->erase(std::remove_if(vars->begin(), vars->end(), [&](const VarDesc& var) { return !own.contains(var.name()); }),
              vars->end());
  std::vector<std::string> problems;
  CheckOp(op.type(), op, around->vars(), *registry_, &problems);
  if (!problems.empty()) return InvalidConfig(problems[0]);
  MR_TRY(around->Append(op, OpRole::kForward));
  for (const VarDesc& var : block.vars()) closed_[var.name()] = ended.builder.vars().find(var.name())->second;
  lowering_->EnterBlock(open_.size() > 1 ? around : nullptr);
  open_.pop_back();
  return Status::Ok();
}

Status ProgramAuthor::DropBlock() {
  if (open_.empty()) return Internal("DropBlock without BeginBlock");
  const std::unique_ptr<OpenBlock> dropped = std::move(open_.back());
  open_.pop_back();
  lowering_->EnterBlock(open_.empty() ? nullptr : &open_.back()->builder);
  main_.mutable_blocks()->DeleteSubrange(dropped->index, main_.blocks_size() - dropped->index);
  closed_ = dropped->closed_before;
  is_minimized_ = dropped->was_minimized;
  return Restore(dropped->before);
}

ProgramAuthor::Before ProgramAuthor::Now() const { return {main_, startup_.blocks(0), model_, lowering_->known()}; }

Status ProgramAuthor::Restore(const Before& before) {
  // Copied into the blocks that builders view.
  for (int block = 0; block < main_.blocks_size(); ++block) *main_.mutable_blocks(block) = before.main.blocks(block);
  *startup_.mutable_blocks(0) = before.startup;
  model_ = before.model;
  lowering_->set_known(before.known);
  return Reload();
}

Status ProgramAuthor::Reload() {
  MR_TRY(lowering_->Reload());
  const BlockBuilder* around = &lowering_->root();
  for (const auto& block : open_) {
    MR_ASSIGN(block->builder, BlockBuilder::Create(block->builder.block(), *registry_));
    block->builder.See(around->vars());
    around = &block->builder;
  }
  return Status::Ok();
}

ProgramAuthor::Place ProgramAuthor::FindPlace(const std::string& name) const {
  // Blocks that have ended may have variables of the same name.
  std::vector<int> blocks = OpenBlocks();
  for (int closed = main_.blocks_size() - 1; closed > 0; --closed) blocks.push_back(closed);
  for (const int block : blocks) {
    const auto& vars = main_.blocks(block).vars();
    for (int var = 0; var < vars.size(); ++var) {
      if (vars[var].name() == name) return {block, var};
    }
  }
  return {};
}

Status ProgramAuthor::SetStopGradient(const std::string& name, bool stop) {
  MR_TRY(Find(name).status());
  if (is_minimized_) {
    return InvalidConfig("stop_gradient of \"" + name + "\": minimize has made the gradients already; set it before");
  }
  const Place place = FindPlace(name);
  if (place.block < 0) return Internal("variable \"" + name + "\" has no description");
  main_.mutable_blocks(place.block)->mutable_vars(place.var)->set_stop_gradient(stop);
  return Status::Ok();
}

Result<bool> ProgramAuthor::StopsGradient(const std::string& name) const {
  MR_TRY(Find(name).status());
  const Place place = FindPlace(name);
  if (place.block < 0) return Internal("variable \"" + name + "\" has no description");
  return main_.blocks(place.block).vars(place.var).stop_gradient();
}

Status ProgramAuthor::Append(OpDesc op) {
  std::vector<std::string> problems;
  CheckOp(op.type(), op, lowering_->main().vars(), *registry_, &problems);
  for (const OpDesc::Var& input : op.inputs()) {
    for (const std::string& name : input.arguments()) {
      if (Has(name) || !closed_.contains(name)) continue;
      return InvalidConfig(
          op.type() + ": \"" + name +
          "\" is a variable of a block that has ended; within the block, write what is needed behind it to a "
          "variable from before it");
    }
  }
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "\n") + problem;
  if (!problems.empty()) return InvalidConfig(text);
  MR_TRY(CheckOverwritten(op, lowering_->main().vars(), *registry_));
  const OpInfo& info = *registry_->Find(op.type());
  if (info.is_gradient || info.is_optimizer || info.is_fused) {
    return InvalidConfig(op.type() + ": gradients and updates are made by an optimizer's minimize");
  }
  return lowering_->main().Append(std::move(op), OpRole::kForward);
}

void ProgramAuthor::FinishTables() {
  for (const TableDesc& table : model_.table()) {
    if (table.has_vocabulary()) continue;
    TableDesc full = WithDefaults(table, model_);
    if (spread_.contains(table.name()) && full.optimizer().has_adam()) {
      full.mutable_optimizer()->mutable_adam()->set_lazy_mode(true);
    }
    const std::string text = TableText(full);
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
  for (const int block : OpenBlocks()) {
    for (VarDesc& var : *main_.mutable_blocks(block)->mutable_vars()) {
      const bool left_out = !trained.only.empty() && var.is_parameter() && !has(trained.only, var.name());
      if (left_out || has(trained.without, var.name())) var.set_stop_gradient(true);
    }
  }
  return Status::Ok();
}

Status ProgramAuthor::AppendMinimization(const std::string& loss, const Trained& trained,
                                         std::vector<ParamGrad>* gradients) {
  CheckOptimizers(*lowering_);
  for (const TableDesc& table : lowering_->model().table()) {
    if (!table.has_accessor() || !HidesCounts(table.accessor())) continue;
    lowering_->Problem("table \"" + table.name() + "\"",
                       "accessor: SparseAccessor is for layers of a job and programs of fleet; here "
                       "CtrCommonAccessor and continuous_value_model with use_cvm=False are the same");
  }
  CheckCounts(*lowering_, main_);
  MR_TRY(TakeMistakes());
  MR_TRY(StopGradients(trained));
  FinishTables();
  for (OpDesc& op : *main_.mutable_blocks(Current())->mutable_ops()) {
    for (const OpDesc::Var& output : op.outputs()) {
      const auto& names = output.arguments();
      const bool makes_loss = std::find(names.begin(), names.end(), loss) != names.end();
      if (makes_loss) SetAttr(op, "op_role", static_cast<int64_t>(OpRole::kLoss));
    }
  }
  MR_ASSIGN(*gradients, AppendBackward(main_, loss, *registry_, Current()));
  MR_TRY(Reload());
  AppendUpdates(*lowering_, *gradients);
  return TakeMistakes();
}

Result<std::vector<ParamGrad>> ProgramAuthor::Minimize(const std::string& loss, const OptimizerDesc& optimizer,
                                                       const Trained& trained) {
  if (is_minimized_) {
    return InvalidConfig(
        "minimize was called already: a program has one; a part has a rate of its own by ParamAttr(learning_rate=), a "
        "table a rule of its own by embedding(optimizer=)");
  }
  MR_ASSIGN(const VarMeta meta, Find(loss));
  if (meta.dtype != DType::kFloat32 || meta.dims.numel() != 1) {
    return InvalidConfig("minimize: the loss must be one float; \"" + loss + "\" is " + meta.dims.ToString() +
                         "; take its mean first");
  }
  const Before before = Now();
  *model_.mutable_optimizer() = optimizer;
  std::vector<ParamGrad> gradients;
  if (Status status = AppendMinimization(loss, trained, &gradients); !status.ok()) {
    MR_TRY(Restore(before));
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
  if (const auto it = closed_.find(name); it != closed_.end()) return it->second;
  std::vector<std::string_view> names;
  for (const auto& [known, meta] : vars) names.push_back(known);
  return NotFound("the program has no variable \"" + name + "\"" + DidYouMean(name, names));
}

}  // namespace millrace
