#include <glog/logging.h>
#include <google/protobuf/reflection.h>

#include <algorithm>

#include "core/hash.h"
#include "core/numbers.h"
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
    lowering.Missing(where, "click: no slot says what was clicked, and the loss has no label: click: \"...\"");
    return "";
  }
  const std::string& click = layer.click().empty() ? label : layer.click();
  std::string counts = "counts@" + layer.show() + "@" + click;
  if (lowering.main().Has(counts)) return counts;
  const std::string clicks = CountOfSlot(lowering, where, "click", click);
  if (clicks.empty()) {
    if (!layer.show().empty()) (void)lowering.OneValueSlot(where, "show", layer.show());
    return "";
  }
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
  bool fits = true;
  const auto refuse = [&](bool is_wrong, const std::string& what) {
    if (is_wrong) lowering.Problem(where, what);
    fits = fits && !is_wrong;
  };
  if (table.has_accessor()) {
    refuse(layer.use_cvm() && HidesCounts(table.accessor()), "use_cvm: the SparseAccessor of table \"" + table.name() +
                                                                 "\" hides its counts; CtrCommonAccessor shows them");
    refuse(layer.pool() != SUM, "pool: rows with an accessor are summed, as their shows and clicks are: pool: SUM");
    return fits;
  }
  const std::string why =
      ": table \"" + table.name() + "\" counts no shows and clicks: give it an accessor, or leave this out";
  refuse(layer.has_use_cvm(), "use_cvm" + why);
  refuse(layer.has_show(), "show" + why);
  refuse(layer.has_click(), "click" + why);
  return fits;
}

bool LowerEmbedding(Lowering& lowering, const std::string& where, const std::string& name,
                    const EmbeddingLayer& layer) {
  const std::vector<const SlotSpec*> slots = SlotsOfIds(lowering, where, layer.slots());
  const TableDesc* table = lowering.Table(where, layer.table());
  const bool fits = table != nullptr && FitsTable(lowering, where, layer, *table);
  if (slots.empty() || !fits || lowering.IsBroken(table->name())) {
    if (layer.has_click()) (void)lowering.OneValueSlot(where, "click", layer.click());
    if (layer.has_show()) (void)lowering.OneValueSlot(where, "show", layer.show());
    return false;
  }
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
  if (layer.units().empty()) {
    lowering.Missing(where, "units: an fc layer needs units, its number of outputs: units: 64");
  }
  if (layer.has_init()) CheckInit(lowering, where, "init", layer.init());
  if (layer.has_bias_init()) CheckInit(lowering, where, "bias_init", layer.bias_init());
  if (layer.has_bias_init() && !layer.bias()) {
    lowering.Problem(where, "bias_init: the layer has no bias (bias: false) that could start with this");
  }
  const std::optional<std::string> in = lowering.JoinedInput(where, layer.in(), name + ".in");
  if (!in || layer.units().empty()) return false;
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

bool LowerFm(Lowering& lowering, const LayerPart& part) {
  const FmLayer& layer = part.desc.fm();
  const std::optional<SlotVectors> in = VectorsOfSlots(lowering, part, layer.in(), layer.dim(), 1);
  if (!in) return false;
  LayerOps ops(lowering, part);
  const auto over = [&](const std::string& x, const std::string& out, int64_t axis, bool keep) {
    return ops.Append("reduce_sum", {{"X", {x}}}, ops.Var(out),
                      {{"dim", std::vector<int64_t>{axis}}, {"keep_dim", keep}, {"reduce_all", false}});
  };
  const std::string vectors =
      ops.Append("reshape2", {{"X", {in->var}}}, ops.Var("v"),
                 {{"shape", std::vector<int64_t>{-1, in->slots, in->dim}}}, "Out", {{"XShape", {ops.Var("v_shape")}}});
  const std::string sum = over(vectors, "sum", 1, false);
  const std::string sum_square = ops.Append("square", {{"X", {sum}}}, ops.Var("sum_square"));
  const std::string square = ops.Append("square", {{"X", {vectors}}}, ops.Var("square"));
  const std::string square_sum = over(square, "square_sum", 1, false);
  const std::string difference = ops.Binary("elementwise_sub", sum_square, square_sum, ops.Var("difference"));
  ops.Scale(over(difference, "total", 1, true), ops.name(), 0.5F);
  return ops.is_whole();
}

bool LowerCross(Lowering& lowering, const std::string& where, const std::string& name, const CrossLayer& layer) {
  const std::optional<std::string> in = lowering.Input(where, "in", layer.in());
  if (layer.has_rank()) lowering.Problem(where, "rank: a rank is of a matrix: form: MATRIX");
  if (!in || layer.has_rank()) return false;
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
  const std::optional<std::vector<std::string>> in = lowering.Inputs(where, layer.in(), 2);
  if (!in) return false;
  const std::vector<std::string>& inputs = *in;
  const VarMetas& vars = lowering.main().vars();
  for (const std::string& input : inputs) {
    if (vars.find(input)->second.dims == vars.find(inputs[0])->second.dims) continue;
    lowering.Misfit(where, "in: shapes differ: \"" + inputs[0] + "\" is " +
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
  if (layer.act() == NONE) {
    const std::string_view what = "act: an activation layer needs act: RELU, SIGMOID, TANH or SOFTMAX";
    layer.has_act() ? lowering.Problem(where, what) : lowering.Missing(where, what);
  }
  if (!in || layer.act() == NONE) return false;
  return lowering.Append(where, MakeOp(ActivationOp(layer.act()), {{"X", {*in}}}, {{"Out", {name}}}));
}

bool LowerDropout(Lowering& lowering, const std::string& where, const std::string& name, const DropoutLayer& layer) {
  const std::optional<std::string> in = lowering.Input(where, "in", layer.in());
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

/// Looks the names up that a layer gives, of which nothing else can be said. `part`: its kind.
void CheckNames(Lowering& lowering, const std::string& where, const LayerDesc& layer,
                const google::protobuf::Message& part) {
  const auto& reflection = *part.GetReflection();
  for (const char* const name : {"in", "query", "gate", "attention"}) {
    const google::protobuf::FieldDescriptor* const field = part.GetDescriptor()->FindFieldByName(name);
    const bool is_list = field != nullptr && field->is_repeated();
    const int count = field == nullptr ? 0
                      : is_list        ? reflection.FieldSize(part, field)
                                       : reflection.HasField(part, field);
    for (int i = 0; i < count; ++i) {
      (void)lowering.Input(where, name,
                           is_list ? reflection.GetRepeatedString(part, field, i) : reflection.GetString(part, field));
    }
  }
  const auto look_up = [&](const auto& of_table) {
    (void)SlotsOfIds(lowering, where, of_table.slots());
    (void)lowering.Table(where, of_table.table());
  };
  if (layer.has_embedding()) look_up(layer.embedding());
  if (layer.has_history()) look_up(layer.history());
}

bool LowerLayer(Lowering& lowering, const std::string& where, const LayerDesc& layer, bool is_in_range) {
  const google::protobuf::FieldDescriptor* field = KindField(layer);
  if (field == nullptr) {
    lowering.Missing(where, "kind: a layer needs a kind: " + OneofNames<LayerDesc>("kind"));
    return false;
  }
  const LayerRegistry& layers = lowering.parts().layers;
  const LayerKind* kind = layers.Find(field->name());
  std::optional<PartAttrs> attrs = PartAttrs({});
  const std::string& name = layer.custom().class_name();
  if (layer.has_custom()) {
    if (layer.custom().has_init()) CheckInit(lowering, where, "init", layer.custom().init());
    kind = FindClass<LayerDesc>(lowering, where, "layer", layers, name);
    attrs.reset();
    if (kind != nullptr) attrs = ReadPartAttrs(lowering, where, layer.custom().attrs(), kind->attrs, name);
  }
  if (!attrs || !is_in_range) {
    CheckNames(lowering, where, layer, layer.GetReflection()->GetMessage(layer, field));
    return false;
  }
  CHECK(kind != nullptr) << field->name() << " is not registered";
  if (!layer.has_custom()) return kind->lower(lowering, {where, layer, *attrs});
  return LowerClass(lowering, where, "layer of the class \"" + name + "\"", [&] {
    return kind->lower(lowering, {where, layer, *attrs}) && lowering.main().Has(layer.name());
  });
}

/// Notes what a layer's rule cannot be; false if there is something.
bool CheckRule(Lowering& lowering, const std::string& where, const ParameterRule& rule) {
  const size_t mistakes = lowering.mistakes().size();
  CheckClip(lowering, where, "rule.clip", rule.has_clip() ? &rule.clip() : nullptr);
  CheckHasNoGlobalNorm(lowering, where, "rule.clip", rule.clip());
  return lowering.mistakes().size() == mistakes;
}

/// Gives the layer's parameters what they have of their own; false, with the mistake noted, when there are none.
bool ApplyRule(Lowering& lowering, const std::string& where, const LayerDesc& layer) {
  if (!layer.has_rule()) return true;
  const std::string own = layer.name() + ".";
  bool has_any = false;
  const VarMetas& vars = lowering.main().vars();
  for (auto var = vars.lower_bound(own); var != vars.end() && var->first.starts_with(own); ++var) {
    if (!var->second.persistable) continue;
    lowering.SetRule(var->first, layer.rule());
    has_any = true;
  }
  if (has_any) return true;
  lowering.Problem(where, layer.has_embedding()
                              ? "rule: an embedding layer has no parameters of its own; the rate and the penalties of "
                                "its table stand in the table's optimizer"
                              : "rule: the layer has no parameters that a rule could be of");
  return false;
}

/// False, with the mistake noted, when the name cannot be that of a variable. `seen`: where names were given before.
bool CheckName(Lowering& lowering, const std::string& where, const LayerDesc& layer,
               std::map<std::string, std::string>& seen) {
  const std::string& name = layer.name();
  const auto refuse = [&](const std::string& what) {
    lowering.Problem(where, "name: " + what);
    return false;
  };
  const auto taken = [&](const std::string& by) {
    return refuse("\"" + name + "\" is the name of " + by + "; choose another for the layer");
  };
  if (name.empty()) {
    lowering.Missing("layer", "name: a layer needs a name");
    return false;
  }
  if (const auto [earlier, is_new] = seen.emplace(name, lowering.path() + ".name"); !is_new) {
    lowering.Taken(where, "name: layer \"" + name + "\" is there already", earlier->second);
    return false;
  }
  if (name == "loss" || name == "prediction") return taken("a variable of the loss");
  if (name.find('@') != std::string::npos) return refuse("the name must not contain @, which marks gradients");
  if (FindTable(lowering.model(), name) != nullptr) return taken("a table");
  if (lowering.FindSlot(name) != nullptr) return taken("a slot");
  if (lowering.main().Has(name)) return taken("a variable inside an earlier layer");
  return true;
}

/// Appends the slots of a range; false if one does not fit. What is wrong with many slots is noted as one mistake.
bool AddSlotsOfIds(Lowering& lowering, const std::string& where, const std::string& at,
                   const std::vector<std::string>& names, std::vector<const SlotSpec*>* slots) {
  std::vector<std::string> unknown;
  std::vector<std::string> unused;
  std::vector<std::string> of_floats;
  std::vector<std::string> wide;
  for (const std::string& name : names) {
    lowering.Read(at, name);
    const SlotSpec* const slot = lowering.FindSlot(name);
    if (slot == nullptr) {
      unknown.push_back(name);
    } else if (!slot->is_used) {
      unused.push_back(name);
    } else if (slot->type != SlotType::kUint64) {
      of_floats.push_back(name);
    } else if (slot->is_dense && slot->width != 1) {
      wide.push_back(name);
    } else if (lowering.Slot(where, at, name) != nullptr) {
      slots->push_back(slot);
    } else {
      return false;
    }
  }
  const auto note = [&](const std::vector<std::string>& wrong, const std::string& before, const char* and_more,
                        const std::string& of_one, const std::string& of_many) {
    if (wrong.empty()) return;
    const bool is_one = wrong.size() == 1;
    const std::string more = is_one ? "" : and_more + std::to_string(wrong.size() - 1) + " more of this range";
    lowering.Problem(where, at + ": " + before + "slot \"" + wrong[0] + "\"" + more + (is_one ? of_one : of_many));
  };
  if (!lowering.schema().all().empty()) {
    const std::string nearest = unknown.empty() ? "" : lowering.Nearest(unknown[0], false, true);
    note(unknown, "no ", ", nor ", nearest, nearest);
  }
  note(unused, "", " and ", " is not used; set its is_used: true", " are not used; set their is_used: true");
  const std::string advice = " floats; an embedding looks up ids (" + lowering.IdAdvice() + ")";
  note(of_floats, "", " and ", " holds" + advice, " hold" + advice);
  note(wide, "", " and ", " is dense with several ids; make it sparse (is_dense: false) so that they are pooled",
       " are dense with several ids; make them sparse (is_dense: false) so that they are pooled");
  return unknown.size() + unused.size() + of_floats.size() + wide.size() == 0;
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
  if (!complete) lowering.Missing(where, "slots: the layer needs slots: slots: \"C1..C26\"");
  for (int i = 0; i < names_given.size(); ++i) {
    const std::string at = "slots[" + std::to_string(i) + "]";
    const Result<std::vector<std::string>> names = ExpandSlotRange(names_given[i]);
    if (!names.ok()) {
      lowering.Problem(where, at + ": " + std::string(names.status().message()));
      complete = false;
      continue;
    }
    complete = AddSlotsOfIds(lowering, where, at, *names, &slots) && complete;
  }
  if (!complete) slots.clear();
  return slots;
}

int64_t Columns(Lowering& lowering, const std::string& where, const std::string& var) {
  const Dims& dims = lowering.main().vars().find(var)->second.dims;
  const int64_t columns = dims.rank() < 2 ? 0 : dims.Product(1, dims.rank());
  if (columns > 0) return columns;
  lowering.Misfit(where, "in: \"" + var + "\" must be [batch, columns]; its shape is " + dims.ToString());
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
  add("fm", "second-order term of a factorization machine", {LowerFm});
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
  std::map<std::string, std::string> seen;
  if (lowering.model().layer().empty()) {
    lowering.Enter("model");
    lowering.Missing("model", "layer: the model has no layers");
  }
  for (int i = 0; i < lowering.model().layer_size(); ++i) {
    LayerDesc layer = lowering.model().layer(i);
    const std::string name = layer.name();
    const std::string where = "layer \"" + name + "\"";
    const std::string path = "model.layer[" + std::to_string(i) + "]";
    lowering.Enter(path);
    const bool is_named = CheckName(lowering, where, layer, seen);
    // What a layer without a good name says is judged under a name that nobody can give.
    if (!is_named) layer.set_name("@" + std::to_string(i));
    const bool is_in_range = lowering.CheckRanges(where, "", layer);
    bool is_sound = CheckRule(lowering, where, layer.rule()) && is_in_range;
    const google::protobuf::FieldDescriptor* kind = KindField(layer);
    if (kind == nullptr) {
      lowering.Enter(path);
    } else {
      lowering.Enter(path + "." + kind->name(), &layer.GetReflection()->GetMessage(layer, kind), name);
    }
    is_sound = LowerLayer(lowering, where, layer, is_in_range) && is_sound;
    lowering.Enter(path);
    if (!is_sound || !ApplyRule(lowering, where, layer) || !is_named) {
      lowering.LayerBroken(name);
      continue;
    }
    int dim = 0;
    for (const TableDesc& table : lowering.tables()) {
      if (layer.has_embedding() && table.name() == layer.embedding().table()) {
        dim = SlotWidthOf(layer.embedding(), table);
      }
    }
    if (layer.has_self_attention() && lowering.EmbeddingDim(layer.self_attention().in()) > 0) {
      const SelfAttentionLayer& attention = layer.self_attention();
      dim = attention.has_units() ? attention.units() : lowering.EmbeddingDim(attention.in());
    }
    lowering.LayerDone(name, dim);
  }
  lowering.Enter("model");
}

}  // namespace millrace
