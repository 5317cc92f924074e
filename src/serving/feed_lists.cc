#include "serving/feed_lists.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "batch/slot_schema.h"
#include "config/feed_names.h"
#include "program/var_meta.h"
#include "serving/prune.h"

namespace millrace {
namespace {

Slot SlotOf(const SlotSpec& spec) {
  Slot slot;
  slot.set_name(spec.name);
  slot.set_type(spec.type == SlotType::kFloat ? "float" : "uint64");
  slot.set_is_used(true);
  slot.set_is_dense(spec.is_dense);
  for (const int64_t size : spec.shape) slot.add_shape(static_cast<int32_t>(size));
  return slot;
}

Slot SlotOf(const ProgramDesc& program, const std::string& var) {
  Slot slot;
  slot.set_name(var);
  slot.set_type("float");
  slot.set_is_used(true);
  slot.set_is_dense(true);
  for (const int64_t size : FindVar(program, var)->type().lod_tensor().tensor().dims()) {
    slot.add_shape(static_cast<int32_t>(size));
  }
  return slot;
}

/// The treatment of zeros, always stored explicitly, because a model documents how it was trained.
DataFeedDesc::Zeros ZerosOf(DataFeedDesc desc) {
  ResolveZeros("", &desc);
  return desc.zeros();
}

/// Returns the slots of `schema` among `vars` in line order; kInvalidConfig if some are missing.
Result<std::vector<const SlotSpec*>> TakeSlots(const SlotSchema& schema, std::vector<std::string> vars) {
  std::vector<const SlotSpec*> slots;
  const std::set<std::string_view> wanted(vars.begin(), vars.end());
  std::set<std::string_view> taken;
  for (const SlotSpec& spec : schema.used()) {
    if (wanted.contains(spec.name) && taken.insert(spec.name).second) slots.push_back(&spec);
  }
  std::erase_if(vars, [&taken](const std::string& name) { return taken.contains(name); });
  if (vars.empty()) return slots;
  std::string names;
  for (const std::string& name : vars) names += (names.empty() ? "\"" : ", \"") + name + "\"";
  return InvalidConfig("nothing feeds " + names + ": no operator computes it, and data_desc has no such slot");
}

}  // namespace

Result<FeedList> OfflineFeed(const ProgramDesc& forward, const std::vector<std::string>& targets,
                             const DataFeedDesc& data_desc) {
  FeedList list;
  MR_ASSIGN(list.program, PruneProgram(forward, targets, {}));
  MR_ASSIGN(const SlotSchema schema, SlotSchema::Create(data_desc));
  MR_ASSIGN(const std::vector<const SlotSpec*> slots, TakeSlots(schema, FedVariables(list.program)));
  for (const SlotSpec* slot : slots) list.vars.push_back(slot->name);
  list.data_desc = data_desc;
  list.data_desc.set_zeros(ZerosOf(data_desc));
  return list;
}

Result<FeedList> OnlineFeed(const ProgramDesc& forward, const std::vector<std::string>& targets,
                            const std::vector<std::string>& pooled, const DataFeedDesc& data_desc) {
  FeedList list;
  MR_ASSIGN(list.program, PruneProgram(forward, targets, pooled));
  MR_ASSIGN(const SlotSchema schema, SlotSchema::Create(data_desc));
  std::vector<std::string> fed = FedVariables(list.program);
  list.data_desc.set_batch_size(data_desc.batch_size());
  list.data_desc.set_zeros(ZerosOf(data_desc));
  auto* slots = list.data_desc.mutable_multi_slot_desc();
  for (const std::string& name : pooled) {
    if (std::erase(fed, name) == 0) continue;
    list.vars.push_back(name);
    *slots->add_slots() = SlotOf(list.program, name);
  }
  MR_ASSIGN(const std::vector<const SlotSpec*> rest, TakeSlots(schema, fed));
  for (const SlotSpec* slot : rest) {
    list.vars.push_back(slot->name);
    *slots->add_slots() = SlotOf(*slot);
  }
  return list;
}

}  // namespace millrace
