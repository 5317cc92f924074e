#include "model/lowering.h"

#include <google/protobuf/reflection.h>

#include <algorithm>

#include "program/field_traits.h"

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

void Lowering::Enter(std::string path, const google::protobuf::Message* part, std::string layer) {
  path_ = std::move(path);
  part_ = part;
  layer_ = std::move(layer);
}

void Lowering::NoteWhole(std::string_view where, std::string_view what, ConfigMistake::Kind kind) {
  mistakes_.push_back({path_, std::string(where) + ": " + std::string(what), kind});
  lines_ += (lines_.empty() ? "" : "\n") + mistakes_.back().message;
}

void Lowering::Note(std::string_view where, std::string_view what, ConfigMistake::Kind kind) {
  const std::string_view field = what.substr(0, what.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.[]"));
  if (field.empty() || !what.substr(field.size()).starts_with(": ")) return NoteWhole(where, what, kind);
  lines_ += (lines_.empty() ? "" : "\n") + std::string(where);
  const std::string_view text = what.substr(field.size() + 2);
  // "adam.lr: lr must be ..." is said as "adam: lr must be ...".
  for (size_t begin = 0, end = 0; begin < field.size(); begin = end + 1) {
    end = std::min(field.find('.', begin), field.size());
    const std::string_view name = field.substr(begin, std::min(field.find('[', begin), end) - begin);
    if (end < field.size() || !text.starts_with(name)) lines_ += ": " + std::string(name);
  }
  lines_ += ": " + std::string(text);
  mistakes_.push_back({path_ + "." + std::string(field), std::string(text), kind});
}

void Lowering::Taken(std::string_view where, std::string_view what, std::string earlier) {
  Problem(where, what);
  mistakes_.back().earlier = std::move(earlier);
}

bool Lowering::CheckRanges(std::string_view where, const std::string& prefix,
                           const google::protobuf::Message& message) {
  const std::vector<OutOfRange> all = FindOutOfRange(message);
  for (const OutOfRange& wrong : all) {
    const std::string_view name = std::string_view(wrong.path).substr(wrong.path.rfind('.') + 1);
    Problem(where, prefix + wrong.path + ": " + std::string(name.substr(0, name.find('['))) + " " + wrong.what);
  }
  return all.empty();
}

void Lowering::ForgetMistakes() {
  mistakes_.clear();
  lines_.clear();
}

Status Lowering::ToStatus() const { return mistakes_.empty() ? Status::Ok() : InvalidConfig(lines_); }

void Lowering::Read(std::string_view field, const std::string& name) {
  if (!name.empty()) reads_.push_back({layer_, name, path_ + "." + std::string(field)});
}

std::string Lowering::ElementOf(std::string_view field, const std::string& name) const {
  std::string path(field);
  const google::protobuf::FieldDescriptor* list =
      part_ == nullptr ? nullptr : part_->GetDescriptor()->FindFieldByName(path);
  if (list == nullptr || !list->is_repeated() || list->cpp_type() != list->CPPTYPE_STRING) return path;
  const auto names = part_->GetReflection()->GetRepeatedFieldRef<std::string>(*part_, list);
  for (int i = 0; i < names.size(); ++i) {
    if (names.Get(i) == name) return path + "[" + std::to_string(i) + "]";
  }
  return path;
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
  if (!status.ok()) NoteWhole(where, status.message(), ConfigMistake::Kind::kShape);
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
  if (name.empty()) {
    Missing(where, std::string(field) + ": the layer needs an input: " + std::string(field) + ": \"...\"");
    return std::nullopt;
  }
  const std::string at = ElementOf(field, name);
  Read(at, name);
  if (layers_.contains(name)) return name;
  if (broken_.contains(name)) return std::nullopt;
  const SlotSpec* slot = FindSlot(name);
  const auto refuse = [&](const std::string& what) {
    Problem(where, at + ": " + what);
    return std::nullopt;
  };
  if (slot == nullptr) {
    const auto is_later = [&name](const LayerDesc& layer) { return layer.name() == name; };
    if (std::any_of(model_->layer().begin(), model_->layer().end(), is_later)) {
      return refuse("layer \"" + name + "\" comes later; put it before this one");
    }
    // Without any slot, which is reported elsewhere, every name would look wrong.
    if (schema_->all().empty()) return std::nullopt;
    return refuse("no layer or slot \"" + name + "\"" + Nearest(name, true, true));
  }
  if (slot->is_used && !slot->is_dense) {
    return refuse("slot \"" + name + "\" is sparse; it becomes a vector through an embedding layer");
  }
  if (slot->is_used && slot->type != SlotType::kFloat) {
    return refuse("slot \"" + name + "\" holds ids; a layer reads floats (" +
                  (schema_->is_of_features() ? "a feature without " + IdAdvice() : "type: \"float\"") +
                  ") or an embedding of them");
  }
  if (Slot(where, at, name) == nullptr) return std::nullopt;
  return name;
}

std::string Lowering::IdAdvice() const {
  return schema_->is_of_features() ? "id {}, hash {} or vocabulary {}" : "type: \"uint64\"";
}

std::optional<std::vector<std::string>> Lowering::Inputs(std::string_view where,
                                                         const google::protobuf::RepeatedPtrField<std::string>& in,
                                                         int least) {
  std::vector<std::string> inputs;
  for (const std::string& name : in) {
    if (const std::optional<std::string> input = Input(where, "in", name)) inputs.push_back(*input);
  }
  if (in.empty()) {
    Missing(where, std::string("in: the layer needs ") +
                       (least < 2 ? "an input: in: \"...\"" : "two inputs or more: in: [\"a\", \"b\"]"));
  } else if (in.size() < least) {
    Problem(where, "in: the layer needs two inputs or more: in: [\"a\", \"b\"]");
  }
  if (in.size() < least || static_cast<int>(inputs.size()) < in.size()) return std::nullopt;
  return inputs;
}

std::optional<std::string> Lowering::JoinedInput(std::string_view where,
                                                 const google::protobuf::RepeatedPtrField<std::string>& in,
                                                 const std::string& joined) {
  const std::optional<std::vector<std::string>> names = Inputs(where, in, 1);
  if (!names) return std::nullopt;
  if (names->size() == 1) return names->front();
  if (!Append(where, MakeOp("concat", {{"X", *names}}, {{"Out", {joined}}}, {{"axis", int64_t{1}}}))) {
    return std::nullopt;
  }
  return joined;
}

const SlotSpec* Lowering::FindSlot(std::string_view name) const {
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second;
}

const SlotSpec* Lowering::Slot(std::string_view where, std::string_view field, const std::string& name) {
  // Layers say themselves what they compute with: one may only count by a label.
  reads_.push_back({"", name, path_ + "." + std::string(field)});
  const SlotSpec* found = FindSlot(name);
  if (found == nullptr || !found->is_used) {
    const bool is_unused = found != nullptr;
    if (is_unused || !schema_->all().empty()) {
      Problem(where, std::string(field) + (is_unused ? ": slot \"" + name + "\" is not used; set its is_used: true"
                                                     : ": no slot \"" + name + "\"" + Nearest(name, false, true)));
    }
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
  if (name.empty()) {
    Missing(where, "table: the layer needs a table: table: \"...\"");
    return nullptr;
  }
  Read("table", name);
  if (const TableDesc* table = FindTable(*model_, name)) return table;
  std::vector<std::string> names;
  for (const TableDesc& table : model_->table()) {
    if (!table.name().empty()) names.push_back(table.name());
  }
  // A table without a name, which is reported, may be the one.
  if (names.empty() && !model_->table().empty()) return nullptr;
  Problem(where, "table: " + (names.empty() ? "no table \"" + name + "\"; the model has none: table { name: \"" + name +
                                                  "\" dim: 16 }"
                                            : NoSuchName("table", name, names)));
  return nullptr;
}

void Lowering::LayerDone(const std::string& name, int embedding_dim) { layers_[name] = embedding_dim; }

bool Lowering::IsBrokenOther(const std::string& layer) const {
  return broken_.contains(layer) &&
         std::any_of(model_->layer().begin(), model_->layer().end(), [&layer](const LayerDesc& one) {
           return one.name() == layer && !one.has_embedding() && !one.has_self_attention();
         });
}

int Lowering::EmbeddingDim(const std::string& layer) const {
  const auto it = layers_.find(layer);
  return it == layers_.end() ? 0 : it->second;
}

}  // namespace millrace
