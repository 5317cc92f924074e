#include "serving/slot_watch.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/hash.h"
#include "features/feature_plan.h"
#include "features/feature_spec.h"
#include "features/text_hash.h"
#include "program/op_registry.h"
#include "program/passes/op_graph.h"
#include "runtime/tensor.h"

namespace millrace {

bool SlotWatch::Slot::IsOutsideVocabulary(uint64_t value) const {
  return oov_hashes.empty() ? value < oov_buckets : std::binary_search(oov_hashes.begin(), oov_hashes.end(), value);
}

void SlotWatch::FindVocabularies(const DataFeedDesc& desc, std::vector<Slot>* slots) {
  std::vector<FeatureMistake> mistakes;
  for (const FeatureSpec& feature : ReadFeatures(desc, &mistakes)) {
    const FeatureDesc& steps = *feature.desc;
    // Hash buckets of words and other strings cannot be distinguished.
    if (!steps.has_vocabulary() || steps.hash().buckets() > 0) continue;
    const auto slot =
        std::find_if(slots->begin(), slots->end(), [&](const auto& one) { return one.name == feature.name; });
    if (slot == slots->end()) continue;
    slot->oov_buckets = static_cast<uint64_t>(steps.vocabulary().oov_buckets());
    slot->share.has_vocabulary = slot->oov_buckets > 0;
    if (!steps.has_hash()) continue;
    const uint64_t seed = SeedOfHash(steps.hash(), feature.name);
    for (uint64_t id = 0; id < slot->oov_buckets; ++id) slot->oov_hashes.push_back(HashOfId(id, seed));
    std::sort(slot->oov_hashes.begin(), slot->oov_hashes.end());
  }
}

void SlotWatch::FindLookups(const Executable& executable, const Scope& root, std::vector<Table>* tables,
                            std::vector<Slot>* slots) {
  std::map<std::string, int> numbers;  // indices in tables
  for (int block = 0; block < executable.block_count(); ++block) {
    for (const OpDesc& op : executable.ops(block)) {
      const std::vector<std::string> ids = InputArguments(op, "Ids");
      const std::vector<std::string> parameters = InputArguments(op, "W");
      if (ids.empty() || parameters.empty()) continue;
      std::vector<int64_t> salts = IntsAttr(op, "slot_salts");
      salts.resize(ids.size(), IntAttr(op, "slot_salt", 0));
      const int64_t padding = IntAttr(op, "padding_idx", -1);
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto slot = std::find_if(slots->begin(), slots->end(), [&](const Slot& s) { return s.name == ids[i]; });
        if (slot == slots->end() || !slot->has_ids || slot->table >= 0 || slot->vocabulary > 0) continue;
        const std::string& name = parameters[std::min(i, parameters.size() - 1)];
        const Variable* const variable = root.Find(name);
        if (variable == nullptr) continue;
        slot->padding = padding;
        if (variable->Is<Tensor>()) {
          const Dims& dims = variable->Get<Tensor>().dims();
          slot->vocabulary = dims.rank() == 2 ? static_cast<uint64_t>(dims[0]) : 0;
        } else if (variable->Is<std::unique_ptr<SparseTable>>()) {
          const auto [known, is_new] = numbers.emplace(name, static_cast<int>(tables->size()));
          if (is_new) tables->emplace_back().table = variable->Get<std::unique_ptr<SparseTable>>().get();
          slot->table = known->second;
          slot->salt = static_cast<uint64_t>(salts[i]);
        }
      }
    }
  }
}

Result<SlotWatch> SlotWatch::Create(const Executable& executable, const DataFeedDesc& desc, const SlotSchema& schema,
                                    const Scope& root, bool is_warm) {
  std::set<std::string_view> read;
  for (int block = 0; block < executable.block_count(); ++block) {
    for (const OpDesc& op : executable.ops(block)) {
      for (const OpDesc::Var& input : op.inputs()) read.insert(input.arguments().begin(), input.arguments().end());
    }
  }
  SlotWatch watch;
  for (const SlotSpec& spec : schema.used()) {
    if (!read.contains(spec.name)) continue;
    Slot& slot = watch.slots_.emplace_back();
    slot.name = spec.name;
    slot.id = spec.id;
    slot.has_ids = spec.type == SlotType::kUint64;
    slot.has_offsets = !spec.is_dense;
    slot.width = static_cast<size_t>(spec.width);
  }
  FindVocabularies(desc, &watch.slots_);
  FindLookups(executable, root, &watch.tables_, &watch.slots_);
  // A dense slot is never empty.
  std::erase_if(watch.slots_, [](const Slot& slot) {
    const bool is_known = slot.table >= 0 || slot.vocabulary > 0 || slot.oov_buckets > 0;
    return !slot.has_offsets && !(slot.has_ids && is_known);
  });
  for (Table& table : watch.tables_) {
    table.keys.reserve(kKeys);
    table.slots.reserve(kKeys);
    table.weights.reserve(kKeys);
    if (!is_warm) continue;
    // Keys that are probably in no table, which need the most memory.
    for (uint64_t i = 0; i < kKeys; ++i) table.keys.push_back(HashedNumber(kKeys, i));
    MR_TRY(table.table->Pull(table.keys, PullMode::kReadOnly, &table.rows));
    table.keys.clear();
  }
  return watch;
}

Status SlotWatch::Look(const SlotBatch& batch) {
  const std::span<const RowOrigin> origins = batch.origins();
  for (int row = 0; row < batch.rows(); ++row) {
    const auto at = static_cast<size_t>(row);
    const uint64_t line = origins.empty() ? ++rows_ : origins[at].line;
    if (line > kAllLines && Mix64(line) % kEvery != 0) continue;
    const uint32_t weight = line > kAllLines ? kEvery : 1;
    ++rows_looked_;
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      size_t begin = at * slot.width;
      size_t end = begin + slot.width;
      if (slot.has_offsets) {
        const std::span<const uint32_t> offsets = batch.offsets(slot.id);
        begin = offsets[at];
        end = offsets[at + 1];
      }
      slot.share.rows += weight;
      if (begin == end) slot.share.empty += weight;
      if (slot.has_ids) MR_TRY(LookAtIds(batch.ids(slot.id).subspan(begin, end - begin), weight, i));
    }
  }
  return Status::Ok();
}

Status SlotWatch::LookAtIds(std::span<const uint64_t> ids, uint32_t weight, size_t number) {
  Slot& slot = slots_[number];
  if (slot.oov_buckets == 0 && slot.vocabulary == 0 && slot.table < 0) return Status::Ok();
  for (const uint64_t id : ids) {
    if (slot.padding >= 0 && id == static_cast<uint64_t>(slot.padding)) continue;
    slot.share.ids += weight;
    if (slot.oov_buckets > 0) {
      if (slot.IsOutsideVocabulary(id)) slot.share.unknown += weight;
    } else if (slot.table < 0) {
      if (id >= slot.vocabulary) slot.share.unknown += weight;
    } else {
      Table& table = tables_[static_cast<size_t>(slot.table)];
      table.keys.push_back(SlotKey(id, slot.salt));
      table.slots.push_back(static_cast<uint32_t>(number));
      table.weights.push_back(weight);
      if (table.keys.size() == kKeys) MR_TRY(LookUp(&table));
    }
  }
  return Status::Ok();
}

Status SlotWatch::LookUp(Table* table) {
  if (table->keys.empty()) return Status::Ok();
  MR_TRY(table->table->Pull(table->keys, PullMode::kReadOnly, &table->rows));
  for (const uint32_t at : table->rows.missing()) slots_[table->slots[at]].share.unknown += table->weights[at];
  table->keys.clear();
  table->slots.clear();
  table->weights.clear();
  return Status::Ok();
}

Status SlotWatch::AddTo(SlotShares* shares) {
  for (Table& table : tables_) MR_TRY(LookUp(&table));
  for (Slot& slot : slots_) {
    (*shares)[slot.name] += std::exchange(slot.share, {.has_vocabulary = slot.share.has_vocabulary});
  }
  rows_looked_ = 0;
  return Status::Ok();
}

}  // namespace millrace
