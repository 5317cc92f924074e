#include "ops/embedding/upcoming_rows.h"

#include <set>
#include <utility>

#include "ops/embedding/slots_layout.h"

namespace millrace {
namespace {

Prefetchable* TableOf(const std::string& name, const Scope& root) {
  const Variable* const variable = root.Find(name);
  if (variable == nullptr || !variable->Is<std::unique_ptr<SparseTable>>()) return nullptr;
  return dynamic_cast<Prefetchable*>(variable->Get<std::unique_ptr<SparseTable>>().get());
}

/// The used slot of ids of this name; -1: there is none.
SlotId IdSlot(const std::string& name, const SlotSchema& schema) {
  const SlotId slot = schema.Find(name);
  return slot >= 0 && schema.used()[static_cast<size_t>(slot)].type == SlotType::kUint64 ? slot : -1;
}

}  // namespace

Result<std::unique_ptr<UpcomingRows>> UpcomingRows::Create(const Executable& step, const SlotSchema& schema,
                                                           const Scope& root) {
  auto rows = std::make_unique<UpcomingRows>();
  std::set<std::string> written;  // what an operator writes is no slot any more
  for (const OpDesc& op : step.ops()) {
    const bool is_lookup =
        op.type() == "fused_slots_pool" || op.type() == "lookup_table" || op.type() == "lookup_table_v2";
    bool reads_slots = is_lookup;
    for (const std::string& name : InputArguments(op, "Ids")) reads_slots = reads_slots && !written.contains(name);
    if (reads_slots) MR_TRY(rows->Add(OpView(op, *step.registry().Find(op.type())), schema, root));
    for (const OpDesc::Var& output : op.outputs()) written.insert(output.arguments().begin(), output.arguments().end());
  }
  return rows;
}

Status UpcomingRows::Add(const OpView& op, const SlotSchema& schema, const Scope& root) {
  const std::vector<std::string> ids = InputArguments(op.desc(), "Ids");
  const std::vector<std::string> tables = InputArguments(op.desc(), "W");
  const bool is_fused = op.type() == "fused_slots_pool";
  std::vector<SlotsLayout::Parameter> parameters = {{0, {0}}};
  std::vector<int64_t> salts;
  if (is_fused) {
    MR_ASSIGN(const SlotsLayout layout, SlotsLayout::Create(op));
    parameters = layout.parameters;
    salts = op.Ints("slot_salts");
  } else {
    salts = {op.Int("slot_salt")};
  }
  salts.resize(ids.size(), 0);
  for (const SlotsLayout::Parameter& parameter : parameters) {
    Lookup lookup;
    std::vector<int64_t> own_salts;
    lookup.table = TableOf(tables.at(parameter.first_slot), root);
    if (lookup.table == nullptr) continue;
    for (const size_t i : parameter.slots) {
      const SlotId slot = IdSlot(ids[i], schema);
      if (slot < 0) break;
      lookup.slots.push_back(slot);
      own_salts.push_back(salts[i]);
      MR_ASSIGN(const IdRule rule, IdRule::Create(op, salts[i]));
      lookup.rules.push_back(rule);
    }
    if (lookup.slots.size() != parameter.slots.size()) continue;
    lookup.keys = SlotKeys(std::move(own_salts));
    lookup.is_distinct = is_fused;
    if (!lookups_.empty()) {
      const Lookup& last = lookups_.back();
      lookup.repeats_last =
          last.slots == lookup.slots && last.rules == lookup.rules && last.is_distinct == lookup.is_distinct;
    }
    lookups_.push_back(std::move(lookup));
  }
  return Status::Ok();
}

Status UpcomingRows::Fetch(const SlotBatch& batch) {
  for (Lookup& lookup : lookups_) {
    if (!lookup.repeats_last) FindKeys(batch, lookup);
    MR_TRY(lookup.table->Fetch(keys_));
  }
  return Status::Ok();
}

void UpcomingRows::FindKeys(const SlotBatch& batch, Lookup& lookup) {
  const auto none = [](size_t) {};
  if (!lookup.is_distinct) {
    keys_.clear();
    for (size_t s = 0; s < lookup.slots.size(); ++s) {
      lookup.rules[s].Apply(
          batch.ids(lookup.slots[s]), 0, [this](size_t, uint64_t key) { keys_.push_back(key); }, none);
    }
    return;
  }
  size_t ids = 0;
  for (const SlotId slot : lookup.slots) ids += batch.ids(slot).size();
  lookup.keys.Start(ids, &unique_, &keys_);
  for (size_t s = 0; s < lookup.slots.size(); ++s) {
    lookup.keys.Add(
        lookup.rules[s], batch.ids(lookup.slots[s]), 0, [](size_t, uint32_t) {}, none);
  }
  lookup.keys.End();
}

}  // namespace millrace
