#include "model/lowering.h"

#include <algorithm>

namespace millrace {

OpDesc MakeOp(std::string_view type, const Bound& inputs, const Bound& outputs, const Attrs& attrs) {
  OpDesc op;
  op.set_type(std::string(type));
  for (const auto& [parameter, arguments] : inputs) SetInput(op, parameter, arguments);
  for (const auto& [parameter, arguments] : outputs) SetOutput(op, parameter, arguments);
  for (const auto& [name, value] : attrs) SetAttr(op, name, value);
  return op;
}

Lowering::Lowering(const ModelDesc& model, const SlotSchema& schema, const ModelParts& parts, ModelForm form,
                   BlockBuilder main, BlockBuilder startup)
    : model_(&model),
      schema_(&schema),
      parts_(&parts),
      form_(form),
      main_(std::move(main)),
      startup_(std::move(startup)) {
  for (const SlotSpec& slot : schema.all()) slots_.emplace(slot.name, &slot);
}

void Lowering::Problem(std::string_view where, std::string_view what) {
  const std::string_view field = what.substr(0, what.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
  const bool has_field = !field.empty() && what.substr(field.size()).starts_with(": ");
  mistakes_.push_back(
      {has_field ? path_ + "." + std::string(field) : path_, std::string(where) + ": " + std::string(what)});
}

Status Lowering::ToStatus() const {
  if (mistakes_.empty()) return Status::Ok();
  std::string text;
  for (const ModelMistake& mistake : mistakes_) text += (text.empty() ? "" : "\n") + mistake.message;
  return InvalidConfig(text);
}

namespace {

/// Whether an operator reads and writes the variable, which lives on from batch to batch: running means and the like.
bool UpdatesState(const OpDesc& op, const VarMetas& vars, const std::string& name) {
  if (!vars.find(name)->second.persistable) return false;
  return std::any_of(op.inputs().begin(), op.inputs().end(), [&name](const OpDesc::Var& input) {
    return std::find(input.arguments().begin(), input.arguments().end(), name) != input.arguments().end();
  });
}

}  // namespace

bool Lowering::Append(std::string_view where, OpDesc op, OpRole role) {
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (role == OpRole::kOptimize || !main().Has(name) || UpdatesState(op, main().vars(), name)) continue;
      Problem(where, "its variable \"" + name + "\" has the name of another; rename the layer");
      return false;
    }
  }
  const Status status = main().Append(std::move(op), role);
  if (!status.ok()) Problem(where, status.message());
  return status.ok();
}

Status Lowering::Reload() {
  MR_ASSIGN(main_, BlockBuilder::Create(main_.block(), main_.registry()));
  MR_ASSIGN(startup_, BlockBuilder::Create(startup_.block(), startup_.registry()));
  return Status::Ok();
}

std::string Lowering::Nearest(const std::string& name, bool with_layers, bool with_slots) const {
  std::vector<std::string_view> names;
  if (with_layers) {
    for (const LayerDesc& layer : model_->layer()) names.push_back(layer.name());
  }
  if (with_slots) {
    for (const SlotSpec& slot : schema_->used()) names.push_back(slot.name);
  }
  return DidYouMean(name, names);
}

std::optional<std::string> Lowering::Input(std::string_view where, std::string_view field, const std::string& name) {
  const std::string prefix = std::string(field) + ": ";
  if (layers_.contains(name)) return name;
  if (broken_.contains(name)) return std::nullopt;
  for (const LayerDesc& layer : model_->layer()) {
    if (layer.name() != name) continue;
    Problem(where, prefix + "layer \"" + name + "\" comes later; put it before this one");
    return std::nullopt;
  }
  const SlotSpec* found = FindSlot(name);
  if (found == nullptr || !found->is_used) {
    if (name.empty()) {
      Problem(where, prefix + "names no layer or slot");
    } else {
      Problem(where, prefix + "no layer or slot \"" + name + "\"" + Nearest(name, true, true));
    }
    return std::nullopt;
  }
  const SlotSpec& slot = *found;
  if (!slot.is_dense || slot.type != SlotType::kFloat) {
    Problem(where, prefix + "slot \"" + name + "\" is " + (slot.is_dense ? "of type uint64" : "sparse") +
                       "; a layer reads dense float slots, others go through an embedding layer");
    return std::nullopt;
  }
  if (Slot(where, field, name) == nullptr) return std::nullopt;
  return name;
}

std::optional<std::string> Lowering::JoinedInput(std::string_view where,
                                                 const google::protobuf::RepeatedPtrField<std::string>& in,
                                                 const std::string& joined) {
  std::vector<std::string> names;
  bool complete = true;
  for (const std::string& name : in) {
    const std::optional<std::string> input = Input(where, "in", name);
    complete = complete && input.has_value();
    if (input) names.push_back(*input);
  }
  if (in.empty()) {
    Problem(where, "in: names no layer or slot");
    return std::nullopt;
  }
  if (!complete) return std::nullopt;
  if (names.size() == 1) return names[0];
  if (!Append(where, MakeOp("concat", {{"X", names}}, {{"Out", {joined}}}, {{"axis", int64_t{1}}}))) {
    return std::nullopt;
  }
  return joined;
}

const SlotSpec* Lowering::FindSlot(std::string_view name) const {
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second;
}

const SlotSpec* Lowering::Slot(std::string_view where, std::string_view field, const std::string& name) {
  const SlotSpec* found = FindSlot(name);
  if (found == nullptr || !found->is_used) {
    const bool is_unused = found != nullptr;
    Problem(where, std::string(field) + (is_unused ? ": slot \"" + name + "\" is not used; set its is_used: true"
                                                   : ": no slot \"" + name + "\"" + Nearest(name, false, true)));
    return nullptr;
  }
  const SlotSpec& slot = *found;
  if (!used_slots_.contains(name) && main_.Has(name)) {
    Problem(where, std::string(field) + ": slot \"" + name + "\" has the name of another variable; rename one of them");
    return nullptr;
  }
  if (used_slots_.insert(name).second) {
    VarMeta meta;
    meta.dtype = slot.type == SlotType::kFloat ? DType::kFloat32 : DType::kInt64;
    meta.dims = slot.is_dense ? Dims(std::span<const int64_t>(slot.shape)) : Dims{-1, 1};
    meta.lod_level = slot.is_dense ? 0 : 1;
    VarDesc& var = main_.Declare(name, meta);
    var.set_stop_gradient(true);
    var.set_need_check_feed(true);
  }
  return &slot;
}

const SlotSpec* Lowering::OneValueSlot(std::string_view where, std::string_view field, const std::string& name) {
  const SlotSpec* slot = Slot(where, field, name);
  if (slot == nullptr || (slot->is_dense && slot->width == 1)) return slot;
  std::string advice = "set is_dense: true and shape: [-1, 1]";
  if (schema_->is_of_features()) {
    advice = slot->is_dense ? "its feature takes " + std::to_string(slot->width) + " columns: name one by from"
                            : "say is_dense: true in feature { name: \"" + name + "\" }";
  }
  Problem(where, std::string(field) + ": slot \"" + name + "\" must have one value an example; " + advice);
  return nullptr;
}

bool Lowering::HasOwnNames(const std::string& layer) const {
  const std::string own = layer + ".";
  // Variables within a layer begin with its name and a dot, those of a table with its name.
  const auto may_meet = [&](const std::string& name) {
    return name.starts_with(own) || (name.size() < layer.size() && own[name.size()] == '.' && own.starts_with(name));
  };
  const auto slot = slots_.lower_bound(own);
  return (slot == slots_.end() || !slot->first.starts_with(own)) &&
         std::none_of(model_->layer().begin(), model_->layer().end(),
                      [&](const LayerDesc& other) { return may_meet(other.name()); }) &&
         std::none_of(model_->table().begin(), model_->table().end(),
                      [&](const TableDesc& table) { return may_meet(table.name()); });
}

const TableDesc* Lowering::Table(std::string_view where, const std::string& name) {
  std::vector<std::string_view> names;
  for (const TableDesc& table : model_->table()) {
    if (table.name() == name) return &table;
    names.push_back(table.name());
  }
  if (name.empty()) {
    Problem(where, "table: names no table");
  } else {
    Problem(where, "table: no table \"" + name + "\"" + DidYouMean(name, names));
  }
  return nullptr;
}

void Lowering::LayerDone(const std::string& name, int embedding_dim) { layers_[name] = embedding_dim; }

int Lowering::EmbeddingDim(const std::string& layer) const {
  const auto it = layers_.find(layer);
  return it == layers_.end() ? 0 : it->second;
}

}  // namespace millrace
