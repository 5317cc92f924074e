#include <glog/logging.h>

#include <algorithm>

#include "core/hash.h"
#include "core/shortest_number.h"
#include "model/layer_kinds.h"
#include "program/ctr_accessor.h"
#include "program/model_defaults.h"
#include "program/oneof_names.h"

namespace millrace {
namespace {

constexpr int64_t kColumnAxis = 1;

/// Tells the slots of one table apart (TableDesc.key SLOT_AND_ID). Part of the checkpoint format.
int64_t SlotSalt(std::string_view slot) { return static_cast<int64_t>(Fnv1a64(slot) | 1); }

/// Looks one slot up and pools it into the variable `out`.
bool LookUp(Lowering& lowering, const std::string& where, const SlotSpec& slot, const TableDesc& table, Pool pool,
            const std::string& rows, const std::string& out) {
  OpDesc lookup = LookupOp(slot.name, table, slot.is_dense ? out : rows);
  if (!lowering.Append(where, std::move(lookup))) return false;
  if (slot.is_dense) return true;
  Bound outputs = {{"Out", {out}}};
  if (pool == MAX) outputs.push_back({"MaxIndex", {out + ".max_index"}});
  return lowering.Append(where, MakeOp("sequence_pool", {{"X", {rows}}}, outputs,
                                       {{"pooltype", std::string(Pool_Name(pool))}, {"pad_value", 0.0f}}));
}

/// Whether the slots can be looked up and pooled by one operator, as fusion would have it, without anybody knowing the
/// variables of each slot.
bool ArePooledAtOnce(Lowering& lowering, const std::string& name, const EmbeddingLayer& layer,
                     std::vector<const SlotSpec*> slots) {
  const auto& layers = lowering.model().layer();
  const auto is_custom = [](const LayerDesc& other) { return other.has_custom(); };
  const auto is_dense = [](const SlotSpec* slot) { return slot->is_dense; };
  if (lowering.form() != ModelForm::kFused || slots.size() < 2 || layer.pool() == MAX) return false;
  std::sort(slots.begin(), slots.end());
  return std::adjacent_find(slots.begin(), slots.end()) == slots.end() &&
         std::none_of(slots.begin(), slots.end(), is_dense) && lowering.HasOwnNames(name) &&
         std::none_of(layers.begin(), layers.end(), is_custom) &&  // a plugin's may look at any variable
         lowering.main().registry().Find("fused_slots_pool") != nullptr;
}

/// What the fusion passes (program/passes/fusion.h) make of LookUp of each slot and a concat.
bool PoolAtOnce(Lowering& lowering, const std::string& where, const std::string& name,
                const std::vector<const SlotSpec*>& slots, const TableDesc& table, Pool pool) {
  std::vector<std::string> ids;
  std::vector<int64_t> salts;
  for (const SlotSpec* slot : slots) {
    ids.push_back(slot->name);
    salts.push_back(SlotSalt(slot->name));
  }
  const OpDesc lookup = LookupOp(ids[0], table, name);
  const std::vector<std::string> tables(ids.size(), table.name());
  OpDesc op = MakeOp("fused_slots_pool", {{"Ids", ids}, {"W", tables}}, {{"Out", {name}}, {"Rows", {name + "@ROWS"}}},
                     {{"pooltype", std::string(Pool_Name(pool))}, {"padding_idx", table.padding_idx()}});
  for (const char* attr : {"update_padding", "out_of_range"}) {
    if (const OpDesc::Attr* set = FindAttr(lookup, attr); set != nullptr) *op.add_attrs() = *set;
  }
  if (FindAttr(lookup, "slot_salt") != nullptr) SetAttr(op, "slot_salts", salts);
  return lowering.Append(where, std::move(op));
}

/// A count of each example as a variable [batch, 1] of floats: a dense slot with one value. Empty, with the mistake
/// noted, for another.
std::string CountOfSlot(Lowering& lowering, const std::string& where, const std::string& field,
                        const std::string& name) {
  const SlotSpec* slot = lowering.OneValueSlot(where, field, name);
  if (slot == nullptr) return "";
  if (slot->type == SlotType::kFloat) return name;
  std::string as_float = name + "@COUNT";
  if (lowering.main().Has(as_float)) return as_float;
  const bool is_cast = lowering.Append(where, MakeOp("cast", {{"X", {name}}}, {{"Out", {as_float}}},
                                                     {{"in_dtype", static_cast<int64_t>(VarType::INT64)},
                                                      {"out_dtype", static_cast<int64_t>(VarType::FP32)}}));
  return is_cast ? as_float : "";
}

/// Shows and clicks of each example, [batch, 2], which layers share; empty when a mistake was noted.
std::string CountsOf(Lowering& lowering, const std::string& where, const EmbeddingLayer& layer) {
  const ModelDesc& model = lowering.model();
  const std::string label = model.loss().empty() ? "" : model.loss(0).label();
  if (layer.click().empty() && label.empty()) {
    lowering.Problem(where, "click: names no slot, and the loss no label that could say what was clicked");
    return "";
  }
  const std::string& click = layer.click().empty() ? label : layer.click();
  std::string counts = "counts@" + layer.show() + "@" + click;
  if (lowering.main().Has(counts)) return counts;
  const std::string clicks = CountOfSlot(lowering, where, "click", click);
  if (clicks.empty()) return "";
  std::string shows = counts + "@SHOW";
  if (layer.show().empty()) {
    const bool is_one = lowering.Append(
        where,
        MakeOp(
            "fill_constant_batch_size_like", {{"Input", {clicks}}}, {{"Out", {shows}}},
            {{"shape", std::vector<int64_t>{-1, 1}}, {"dtype", static_cast<int64_t>(VarType::FP32)}, {"value", 1.0f}}));
    if (!is_one) return "";
  } else {
    shows = CountOfSlot(lowering, where, "show", layer.show());
    if (shows.empty()) return "";
  }
  const bool is_joined =
      lowering.Append(where, MakeOp("concat", {{"X", {shows, clicks}}}, {{"Out", {counts}}}, {{"axis", kColumnAxis}}));
  return is_joined ? counts : "";
}

/// Rows of a table with an accessor, pooled, of `slots` side by side, become `out`; their gradient brings the counts.
bool TakeCounts(Lowering& lowering, const std::string& where, const EmbeddingLayer& layer, size_t slots,
                const std::string& pooled, const std::string& out) {
  const std::string counts = CountsOf(lowering, where, layer);
  if (counts.empty()) return false;
  OpDesc cvm = MakeOp("cvm", {{"X", {pooled}}, {"CVM", {counts}}}, {{"Y", {out}}}, {{"use_cvm", layer.use_cvm()}});
  if (slots > 1) SetAttr(cvm, "slots", static_cast<int64_t>(slots));
  return lowering.Append(where, std::move(cvm));
}

/// The layer of a table with an accessor: one cvm where the slots are pooled at once, else one a slot, as Paddle has
/// it.
bool LowerCounted(Lowering& lowering, const std::string& where, const std::string& name, const EmbeddingLayer& layer,
                  const std::vector<const SlotSpec*>& slots, const TableDesc& table) {
  constexpr const char* kCounted = "@COUNTED";
  if (ArePooledAtOnce(lowering, name, layer, slots)) {
    return PoolAtOnce(lowering, where, name + kCounted, slots, table, layer.pool()) &&
           TakeCounts(lowering, where, layer, slots.size(), name + kCounted, name);
  }
  std::vector<std::string> taken;
  for (const SlotSpec* slot : slots) {
    const std::string stem = name + "." + slot->name;
    const std::string& out = taken.emplace_back(slots.size() == 1 ? name : stem);
    if (!LookUp(lowering, where, *slot, table, layer.pool(), stem + ".rows", out + kCounted) ||
        !TakeCounts(lowering, where, layer, 1, out + kCounted, out)) {
      return false;
    }
  }
  if (taken.size() == 1) return true;
  return lowering.Append(where, MakeOp("concat", {{"X", taken}}, {{"Out", {name}}}, {{"axis", kColumnAxis}}));
}

/// Notes what a layer says that its table cannot have.
bool FitsTable(Lowering& lowering, const std::string& where, const EmbeddingLayer& layer, const TableDesc& table) {
  if (table.has_accessor() && layer.pool() != SUM) {
    lowering.Problem(where, "pool: rows with an accessor are summed, as their shows and clicks are: pool: SUM");
    return false;
  }
  if (table.has_accessor() && HidesCounts(table.accessor()) && layer.use_cvm()) {
    lowering.Problem(where, "use_cvm: the SparseAccessor of table \"" + table.name() +
                                "\" hides its counts; CtrCommonAccessor shows them");
    return false;
  }
  const char* field = layer.has_use_cvm() ? "use_cvm"
                      : layer.has_show()  ? "show"
                      : layer.has_click() ? "click"
                                          : nullptr;
  if (table.has_accessor() || field == nullptr) return true;
  lowering.Problem(where, std::string(field) + ": table \"" + table.name() +
                              "\" counts no shows and clicks: give it an accessor, or leave this out");
  return false;
}

bool LowerEmbedding(Lowering& lowering, const std::string& where, const std::string& name,
                    const EmbeddingLayer& layer) {
  const std::vector<const SlotSpec*> slots = SlotsOfIds(lowering, where, layer.slots());
  const TableDesc* table = lowering.Table(where, layer.table());
  if (slots.empty() || table == nullptr || DimOf(*table) < 1 || !FitsTable(lowering, where, layer, *table))
    return false;
  lowering.AddTable(*table);
  if (!lowering.main().Has(table->name())) return false;
  if (table->has_accessor()) return LowerCounted(lowering, where, name, layer, slots, *table);
  if (ArePooledAtOnce(lowering, name, layer, slots)) {
    return PoolAtOnce(lowering, where, name, slots, *table, layer.pool());
  }
  std::vector<std::string> pooled;
  for (const SlotSpec* slot : slots) {
    const std::string stem = name + "." + slot->name;
    pooled.push_back(slots.size() == 1 ? name : stem);
    if (!LookUp(lowering, where, *slot, *table, layer.pool(), stem + ".rows", pooled.back())) return false;
  }
  if (pooled.size() == 1) return true;
  return lowering.Append(where, MakeOp("concat", {{"X", pooled}}, {{"Out", {name}}}, {{"axis", kColumnAxis}}));
}

bool LowerFc(Lowering& lowering, const std::string& where, const std::string& name, const FcLayer& layer) {
  if (layer.units().empty()) lowering.Problem(where, "units: missing; say how many outputs, for example units: 64");
  for (const int units : layer.units()) {
    if (units < 1) lowering.Problem(where, "units: must be at least 1; " + std::to_string(units));
  }
  const std::optional<std::string> in = lowering.JoinedInput(where, layer.in(), name + ".in");
  const bool sizes_fit = !layer.units().empty() && *std::min_element(layer.units().begin(), layer.units().end()) > 0;
  if (!in || !sizes_fit) return false;
  std::string x = *in;
  int64_t columns = Columns(lowering, where, x);
  if (columns == 0) return false;
  for (int i = 0; i < layer.units_size(); ++i) {
    const std::string index = std::to_string(i);
    const int64_t units = layer.units(i);
    const bool has_act = layer.act() != NONE;
    const std::string out = i + 1 == layer.units_size() ? name : name + "." + index;
    const std::string biased = has_act ? name + ".add_" + index : out;
    const std::string product = layer.bias() ? name + ".mul_" + index : biased;
    lowering.AddParameter(where, name + ".w_" + index, {columns, units}, InitOf(layer), true);
    if (!lowering.Append(where, MakeOp("mul", {{"X", {x}}, {"Y", {name + ".w_" + index}}}, {{"Out", {product}}},
                                       {{"x_num_col_dims", int64_t{1}}, {"y_num_col_dims", int64_t{1}}}))) {
      return false;
    }
    if (layer.bias()) {
      lowering.AddParameter(where, name + ".b_" + index, {units}, BiasInitOf(layer), false);
      if (!lowering.Append(where, MakeOp("elementwise_add", {{"X", {product}}, {"Y", {name + ".b_" + index}}},
                                         {{"Out", {biased}}}, {{"axis", int64_t{1}}}))) {
        return false;
      }
    }
    if (has_act && !lowering.Append(where, MakeOp(ActivationOp(layer.act()), {{"X", {biased}}}, {{"Out", {out}}}))) {
      return false;
    }
    x = out;
    columns = units;
  }
  return true;
}

bool LowerConcat(Lowering& lowering, const std::string& where, const std::string& name, const ConcatLayer& layer) {
  const std::optional<std::string> in = lowering.JoinedInput(where, layer.in(), name);
  if (!in || layer.in_size() > 1) return in.has_value();
  return lowering.Append(where, MakeOp("concat", {{"X", {*in}}}, {{"Out", {name}}}, {{"axis", kColumnAxis}}));
}

bool LowerFm(Lowering& lowering, const std::string& where, const std::string& name, const FmLayer& layer) {
  const std::optional<std::string> in = lowering.Input(where, "in", layer.in());
  if (!in) return false;
  const int64_t dim = layer.has_dim() ? layer.dim() : lowering.EmbeddingDim(*in);
  const int64_t columns = Columns(lowering, where, *in);
  if (columns == 0) return false;
  if (dim < 1 || columns % dim != 0) {
    lowering.Problem(where, dim < 1 ? "dim: missing; \"" + *in + "\" is no embedding layer, so say the floats per slot"
                                    : "dim: must divide the " + std::to_string(columns) + " columns of \"" + *in +
                                          "\"; " + std::to_string(dim));
    return false;
  }
  const std::vector<int64_t> over_slots = {1};
  const auto var = [&](const char* part) { return name + "." + part; };
  const auto reduce = [&](const std::string& x, const std::string& out, bool keep) {
    return MakeOp("reduce_sum", {{"X", {x}}}, {{"Out", {out}}},
                  {{"dim", over_slots}, {"keep_dim", keep}, {"reduce_all", false}});
  };
  return lowering.Append(where, MakeOp("reshape2", {{"X", {*in}}}, {{"Out", {var("v")}}, {"XShape", {var("v_shape")}}},
                                       {{"shape", std::vector<int64_t>{-1, columns / dim, dim}}})) &&
         lowering.Append(where, reduce(var("v"), var("sum"), false)) &&
         lowering.Append(where, MakeOp("square", {{"X", {var("sum")}}}, {{"Out", {var("sum_square")}}})) &&
         lowering.Append(where, MakeOp("square", {{"X", {var("v")}}}, {{"Out", {var("square")}}})) &&
         lowering.Append(where, reduce(var("square"), var("square_sum"), false)) &&
         lowering.Append(where, MakeOp("elementwise_sub", {{"X", {var("sum_square")}}, {"Y", {var("square_sum")}}},
                                       {{"Out", {var("difference")}}}, {{"axis", int64_t{-1}}})) &&
         lowering.Append(where, reduce(var("difference"), var("total"), true)) &&
         lowering.Append(where, MakeOp("scale", {{"X", {var("total")}}}, {{"Out", {name}}},
                                       {{"scale", 0.5f}, {"bias", 0.0f}, {"bias_after_scale", true}}));
}

bool LowerCross(Lowering& lowering, const std::string& where, const std::string& name, const CrossLayer& layer) {
  const std::optional<std::string> in = lowering.Input(where, "in", layer.in());
  if (layer.layers() < 1) lowering.Problem(where, "layers: must be at least 1; " + std::to_string(layer.layers()));
  if (!in || layer.layers() < 1) return false;
  const int64_t columns = Columns(lowering, where, *in);
  if (columns == 0) return false;
  Initializer xavier;
  xavier.set_xavier(true);
  Initializer zero;
  zero.set_constant(0);
  std::string x = *in;
  for (int i = 0; i < layer.layers(); ++i) {
    const std::string index = std::to_string(i);
    const auto var = [&](const char* part) { return name + "." + part + "_" + index; };
    const std::string out = i + 1 == layer.layers() ? name : name + "." + index;
    lowering.AddParameter(where, var("w"), {columns, 1}, xavier, true);
    lowering.AddParameter(where, var("b"), {columns}, zero, false);
    const bool ok = lowering.Append(where, MakeOp("mul", {{"X", {x}}, {"Y", {var("w")}}}, {{"Out", {var("mul")}}},
                                                  {{"x_num_col_dims", int64_t{1}}, {"y_num_col_dims", int64_t{1}}})) &&
                    lowering.Append(where, MakeOp("elementwise_mul", {{"X", {*in}}, {"Y", {var("mul")}}},
                                                  {{"Out", {var("cross")}}}, {{"axis", int64_t{-1}}})) &&
                    lowering.Append(where, MakeOp("elementwise_add", {{"X", {var("cross")}}, {"Y", {var("b")}}},
                                                  {{"Out", {var("add")}}}, {{"axis", int64_t{1}}})) &&
                    lowering.Append(where, MakeOp("elementwise_add", {{"X", {var("add")}}, {"Y", {x}}},
                                                  {{"Out", {out}}}, {{"axis", int64_t{-1}}}));
    if (!ok) return false;
    x = out;
  }
  return true;
}

bool LowerAdd(Lowering& lowering, const std::string& where, const std::string& name, const AddLayer& layer) {
  std::vector<std::string> inputs;
  for (const std::string& in : layer.in()) {
    if (const std::optional<std::string> input = lowering.Input(where, "in", in)) inputs.push_back(*input);
  }
  if (layer.in_size() < 2) {
    lowering.Problem(where, "in: needs two inputs or more; it has " + std::to_string(layer.in_size()));
    return false;
  }
  if (static_cast<int>(inputs.size()) < layer.in_size()) return false;
  const VarMetas& vars = lowering.main().vars();
  for (const std::string& input : inputs) {
    if (vars.find(input)->second.dims == vars.find(inputs[0])->second.dims) continue;
    lowering.Problem(where, "in: shapes differ: \"" + inputs[0] + "\" is " +
                                vars.find(inputs[0])->second.dims.ToString() + ", \"" + input + "\" is " +
                                vars.find(input)->second.dims.ToString());
    return false;
  }
  return lowering.Append(where, MakeOp("sum", {{"X", inputs}}, {{"Out", {name}}}));
}

bool LowerReduceSum(Lowering& lowering, const std::string& where, const std::string& name,
                    const ReduceSumLayer& layer) {
  const std::optional<std::string> in = lowering.Input(where, "in", layer.in());
  if (!in) return false;
  return lowering.Append(where, MakeOp("reduce_sum", {{"X", {*in}}}, {{"Out", {name}}},
                                       {{"dim", std::vector<int64_t>{-1}}, {"keep_dim", true}, {"reduce_all", false}}));
}

bool LowerActivation(Lowering& lowering, const std::string& where, const std::string& name,
                     const ActivationLayer& layer) {
  const std::optional<std::string> in = lowering.Input(where, "in", layer.in());
  if (layer.act() == NONE) lowering.Problem(where, "act: missing; RELU, SIGMOID, TANH or SOFTMAX");
  if (!in || layer.act() == NONE) return false;
  return lowering.Append(where, MakeOp(ActivationOp(layer.act()), {{"X", {*in}}}, {{"Out", {name}}}));
}

bool LowerDropout(Lowering& lowering, const std::string& where, const std::string& name, const DropoutLayer& layer) {
  const std::optional<std::string> in = lowering.Input(where, "in", layer.in());
  if (!(layer.prob() >= 0 && layer.prob() < 1)) {
    lowering.Problem(where, "prob: must be in [0, 1); " + ShortestNumber(layer.prob()));
    return false;
  }
  if (!in) return false;
  return lowering.Append(where, MakeOp("dropout", {{"X", {*in}}}, {{"Out", {name}}, {"Mask", {name + ".mask"}}},
                                       {{"dropout_prob", layer.prob()},
                                        {"dropout_implementation", std::string("upscale_in_train")},
                                        {"is_test", false}}));
}

/// A kind of Millrace: what lowers it, and the field of LayerDesc that it has.
template <auto kLower, auto kField>
LayerKind Kind() {
  return {[](Lowering& lowering, const LayerPart& part) {
    return kLower(lowering, part.where, part.desc.name(), (part.desc.*kField)());
  }};
}

const google::protobuf::FieldDescriptor* KindField(const LayerDesc& layer) {
  const google::protobuf::OneofDescriptor* kind = LayerDesc::descriptor()->FindOneofByName("kind");
  return layer.GetReflection()->GetOneofFieldDescriptor(layer, kind);
}

bool LowerLayer(Lowering& lowering, const std::string& where, const LayerDesc& layer) {
  const google::protobuf::FieldDescriptor* field = KindField(layer);
  if (field == nullptr) {
    lowering.Problem(where, "has no kind; add " + OneofNames<LayerDesc>("kind"));
    return false;
  }
  const LayerRegistry& layers = lowering.parts().layers;
  if (!layer.has_custom()) {
    const LayerKind* kind = layers.Find(field->name());
    CHECK(kind != nullptr) << field->name() << " is not registered";
    return kind->lower(lowering, {where, layer, PartAttrs({})});
  }
  const std::string& name = layer.custom().class_name();
  const LayerKind* kind = FindClass<LayerDesc>(lowering, where, layers, name);
  if (kind == nullptr) return false;
  const std::optional<PartAttrs> attrs = ReadPartAttrs(lowering, where, layer.custom().attrs(), kind->attrs, name);
  if (!attrs) return false;
  return LowerClass(lowering, where, "layer of the class \"" + name + "\"", [&] {
    return kind->lower(lowering, {where, layer, *attrs}) && lowering.main().Has(layer.name());
  });
}

/// Gives the layer's parameters what they have of their own; false, with the mistake noted, when there are none.
bool ApplyRule(Lowering& lowering, const std::string& where, const LayerDesc& layer) {
  if (!layer.has_rule()) return true;
  const GradientClip* clip = layer.rule().has_clip() ? &layer.rule().clip() : nullptr;
  CheckGradientSettings(lowering, where, layer.rule().regularization(), clip);
  if (layer.rule().clip().has_global_norm()) {
    lowering.Problem(where, "rule: clip: global_norm is of all gradients; it stands in the model's optimizer");
    return false;
  }
  const std::string own = layer.name() + ".";
  bool has_any = false;
  const VarMetas& vars = lowering.main().vars();
  for (auto var = vars.lower_bound(own); var != vars.end() && var->first.starts_with(own); ++var) {
    if (!var->second.persistable) continue;
    lowering.SetRule(var->first, layer.rule());
    has_any = true;
  }
  if (has_any) return true;
  lowering.Problem(where,
                   layer.has_embedding()
                       ? "rule: it has no parameters of its own; the rate and the penalties of its table stand in "
                         "the table's optimizer"
                       : "rule: it has no parameters that a rule could be of");
  return false;
}

/// False, with the mistake noted, when the name cannot be that of a variable.
bool CheckName(Lowering& lowering, const std::string& where, const LayerDesc& layer, std::set<std::string>& seen) {
  const std::string& name = layer.name();
  const auto taken = [&](const std::string& by) {
    lowering.Problem(where, "name: it is the name of " + by + "; choose another");
    return false;
  };
  if (name.empty()) {
    lowering.Problem("layer", "name: missing");
    return false;
  }
  if (!seen.insert(name).second) return taken("an earlier layer");
  if (name == "loss" || name == "prediction") return taken("a variable of the loss");
  if (name.find('@') != std::string::npos) {
    lowering.Problem(where, "name: must not contain @, which marks gradients");
    return false;
  }
  for (const TableDesc& table : lowering.model().table()) {
    if (table.name() == name) return taken("a table");
  }
  if (lowering.FindSlot(name) != nullptr) return taken("a slot");
  if (lowering.main().Has(name)) return taken("a variable inside an earlier layer");
  return true;
}

}  // namespace

std::string_view ActivationOp(Activation act) {
  switch (act) {
    case RELU: return "relu";
    case SIGMOID: return "sigmoid";
    case TANH: return "tanh";
    case SOFTMAX: return "softmax";
    case NONE: break;
  }
  return "";
}

std::vector<const SlotSpec*> SlotsOfIds(Lowering& lowering, const std::string& where,
                                        const google::protobuf::RepeatedPtrField<std::string>& names_given) {
  std::vector<const SlotSpec*> slots;
  bool complete = !names_given.empty();
  if (!complete) lowering.Problem(where, "slots: names no slot");
  for (const std::string& range : names_given) {
    const Result<std::vector<std::string>> names = ExpandSlotRange(range);
    if (!names.ok()) {
      lowering.Problem(where, "slots: " + names.status().message());
      complete = false;
      continue;
    }
    for (const std::string& name : *names) {
      const SlotSpec* slot = lowering.Slot(where, "slots", name);
      complete = complete && slot != nullptr;
      if (slot == nullptr) continue;
      if (slot->type != SlotType::kUint64) {
        lowering.Problem(where,
                         "slots: slot \"" + name + "\" holds floats; an embedding looks ids up (type: \"uint64\")");
        complete = false;
      } else if (slot->is_dense && slot->width != 1) {
        lowering.Problem(where, "slots: slot \"" + name + "\" is dense with " + std::to_string(slot->width) +
                                    " ids; make it sparse (is_dense: false) so that they are pooled");
        complete = false;
      } else {
        slots.push_back(slot);
      }
    }
  }
  if (!complete) slots.clear();
  return slots;
}

int64_t Columns(Lowering& lowering, const std::string& where, const std::string& var) {
  const Dims& dims = lowering.main().vars().find(var)->second.dims;
  const int64_t columns = dims.rank() < 2 ? 0 : dims.Product(1, dims.rank());
  if (columns > 0) return columns;
  lowering.Problem(where, "in: \"" + var + "\" must be [batch, columns]; its shape is " + dims.ToString());
  return 0;
}

OpDesc LookupOp(const std::string& ids, const TableDesc& table, const std::string& out) {
  OpDesc lookup = MakeOp("lookup_table", {{"Ids", {ids}}, {"W", {table.name()}}}, {{"Out", {out}}},
                         {{"is_sparse", true}, {"is_distributed", false}, {"padding_idx", table.padding_idx()}});
  // The padding row of a model's table stays zero; programs of Paddle train it unseen.
  if (table.padding_idx() >= 0) SetAttr(lookup, "update_padding", false);
  if (table.key() == TableDesc::SLOT_AND_ID) SetAttr(lookup, "slot_salt", SlotSalt(ids));
  if (table.has_out_of_range()) SetAttr(lookup, "out_of_range", TableDesc::OutOfRange_Name(table.out_of_range()));
  return lookup;
}

void RegisterBuiltinLayers(LayerRegistry* layers) {
  const auto add = [layers](const char* name, const char* doc, LayerKind kind) {
    CHECK(layers->Add(name, doc, std::move(kind)).ok()) << name;
  };
  add("embedding", "looks ids up and pools their rows", Kind<LowerEmbedding, &LayerDesc::embedding>());
  add("fc", "fully connected", Kind<LowerFc, &LayerDesc::fc>());
  add("concat", "sets inputs side by side", Kind<LowerConcat, &LayerDesc::concat>());
  add("fm", "second-order term of a factorization machine", Kind<LowerFm, &LayerDesc::fm>());
  add("cross", "cross layers of Deep & Cross", {[](Lowering& lowering, const LayerPart& part) {
        if (part.desc.cross().form() == CrossLayer::MATRIX) return LowerCrossMatrix(lowering, part);
        return LowerCross(lowering, part.where, part.desc.name(), part.desc.cross());
      }});
  add("add", "adds inputs of equal shape", Kind<LowerAdd, &LayerDesc::add>());
  add("reduce_sum", "sums the last axis", Kind<LowerReduceSum, &LayerDesc::reduce_sum>());
  add("activation", "an activation by itself", Kind<LowerActivation, &LayerDesc::activation>());
  add("dropout", "sets a random part to zero while training", Kind<LowerDropout, &LayerDesc::dropout>());
  add("mixture", "adds up experts by a gate", {LowerMixture});
  add("multiply", "multiplies inputs, element by element", {LowerMultiply});
  add("layer_norm", "brings each row to mean 0 and deviation 1", {LowerLayerNorm});
  add("batch_norm", "brings each column of a batch to mean 0 and deviation 1", {LowerBatchNorm});
  add("history", "rows of the last ids of slots, in their order", {LowerHistory});
  add("pool", "one vector of a sequence", {LowerPool});
  add("attention", "attention of a candidate to a history", {LowerAttention});
  add("self_attention", "multi-head self-attention", {LowerSelfAttention});
  add("gru", "a gated recurrent unit along a sequence", {LowerGru});
  add("cin", "compressed interaction network", {LowerCin});
  add("bilinear", "bilinear interactions of slots", {LowerBilinear});
  add("op", "any operator", {LowerOpLayer});
}

void LowerLayers(Lowering& lowering) {
  std::set<std::string> seen;
  for (int i = 0; i < lowering.model().layer_size(); ++i) {
    const LayerDesc& layer = lowering.model().layer(i);
    const std::string where = "layer \"" + layer.name() + "\"";
    const std::string path = "model.layer[" + std::to_string(i) + "]";
    lowering.Enter(path);
    const bool is_named = CheckName(lowering, where, layer, seen);
    const google::protobuf::FieldDescriptor* kind = KindField(layer);
    lowering.Enter(path + (kind == nullptr ? "" : "." + kind->name()));
    if (is_named && LowerLayer(lowering, where, layer) && ApplyRule(lowering, where, layer)) {
      const bool is_embedding = layer.has_embedding();
      int dim = 0;
      for (const TableDesc& table : lowering.tables()) {
        if (is_embedding && table.name() == layer.embedding().table()) dim = SlotWidthOf(layer.embedding(), table);
      }
      if (layer.has_self_attention() && lowering.EmbeddingDim(layer.self_attention().in()) > 0) {
        const SelfAttentionLayer& attention = layer.self_attention();
        dim = attention.has_units() ? attention.units() : lowering.EmbeddingDim(attention.in());
      }
      lowering.LayerDone(layer.name(), dim);
    } else {
      lowering.LayerBroken(layer.name());
    }
  }
}

}  // namespace millrace
