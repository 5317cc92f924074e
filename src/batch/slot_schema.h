#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

class DataFeedDesc;

/// What the values of a slot are: ids (any uint64) or floats.
enum class SlotType : uint8_t { kUint64, kFloat };

/// Numbers a used slot: its column in a SlotBatch.
using SlotId = int;

/// One slot of a line, as the parser and the batch need it.
struct SlotSpec {
  std::string name;
  SlotType type = SlotType::kUint64;
  bool is_dense = false;
  bool is_used = true;
  /// Column in a SlotBatch; -1 when the slot is not used.
  SlotId id = -1;
  /// Values in every example of a dense slot (product of the positive dims of `shape`); 0 for sparse slots.
  int width = 0;
  /// As configured, with -1 for the batch; empty for sparse slots.
  std::vector<int64_t> shape;
};

/// The slots of a line in line order, checked and with "C1..C26" written out.
///
/// Immutable, copyable, shared by any number of threads.
class SlotSchema {
 public:
  /// Reads `desc.multi_slot_desc`. All mistakes (unknown type, a name twice, a dense shape without or with two -1,
  /// no used slot) come back in one kInvalidConfig, a line each.
  static Result<SlotSchema> Create(const DataFeedDesc& desc);

  /// Every slot, in line order.
  const std::vector<SlotSpec>& all() const { return slots_; }
  /// Used slots by SlotId.
  const std::vector<SlotSpec>& used() const { return used_; }
  int used_count() const { return static_cast<int>(used_.size()); }
  /// The used slot with this name, or -1.
  SlotId Find(std::string_view name) const;
  /// Whether features make the slots: then nobody writes these, and advice is about features.
  bool is_of_features() const { return is_of_features_; }

 private:
  std::vector<SlotSpec> slots_;
  std::vector<SlotSpec> used_;
  bool is_of_features_ = false;
};

/// Writes "C1..C26" out as its 26 names; a name without ".." comes back alone. "C26..C1" and "C1..D3" are errors.
Result<std::vector<std::string>> ExpandSlotRange(std::string_view name);

}  // namespace millrace
