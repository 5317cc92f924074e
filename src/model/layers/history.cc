#include "model/layer_kinds.h"

namespace millrace {

bool LowerHistory(Lowering& lowering, const LayerPart& part) {
  const HistoryLayer& layer = part.desc.history();
  const std::vector<const SlotSpec*> slots = SlotsOfIds(lowering, part.where, layer.slots());
  const TableDesc* table = lowering.Table(part.where, layer.table());
  if (slots.empty() || table == nullptr) return false;
  for (const SlotSpec* slot : slots) {
    if (!slot->is_dense) continue;
    lowering.Problem(part.where, lowering.ElementOf("slots", slot->name) + ": slot \"" + slot->name +
                                     "\" is dense with one id; a history has any number");
    return false;
  }
  if (table->has_accessor()) {
    lowering.Problem(part.where, "table: \"" + table->name() +
                                     "\" has an accessor, whose rows are pooled by slot; a history "
                                     "reads them one by one");
    return false;
  }
  if (lowering.IsBroken(table->name())) return false;
  lowering.AddTable(*table);
  if (!lowering.main().Has(table->name())) return false;
  LayerOps ops(lowering, part);
  std::vector<std::string> rows;
  for (const SlotSpec* slot : slots) {
    rows.push_back(ops.Var(slot->name + ".rows"));
    if (!lowering.Append(part.where, LookupOp(slot->name, *table, rows.back()))) return false;
  }
  const std::string window = layer.position() ? ops.Var("window") : ops.name();
  ops.Append("history_window", {{"X", rows}}, window, {{"length", int64_t{layer.max_length()}}}, "Out",
             {{"Mask", {ops.Var("mask")}}});
  if (layer.position()) {
    const auto columns = static_cast<int64_t>(rows.size()) * table->dim();
    ops.Append("elementwise_add",
               {{"X", {window}}, {"Y", {ops.Weight("position", {int64_t{layer.max_length()}, columns})}}}, ops.name(),
               {{"axis", int64_t{1}}});
  }
  return ops.is_whole();
}

}  // namespace millrace
