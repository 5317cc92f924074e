#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

class DataFeedDesc;

/// Value type of a slot: ids (any uint64) or floats.
enum class SlotType : uint8_t { kUint64, kFloat };

/// Index of a used slot: its column in a SlotBatch.
using SlotId = int;

/// One slot of a line, for the parser and the batch.
struct SlotSpec {
  std::string name;
  SlotType type = SlotType::kUint64;
  bool is_dense = false;
  bool is_used = true;
  /// Column in a SlotBatch; -1 if unused.
  SlotId id = -1;
  /// Values per example of a dense slot (product of the positive dims of `shape`); 0 for sparse slots.
  int width = 0;
  /// As configured, with -1 for the batch; empty for sparse slots.
  std::vector<int64_t> shape;
};

/// The slots of a line in order, checked and with "C1..C26" expanded.
///
/// Immutable, copyable, shared by any number of threads.
class SlotSchema {
 public:
  /// Reads `desc.multi_slot_desc`. Fails with kInvalidConfig, one line per mistake: unknown type, duplicate name, a
  /// dense shape without exactly one -1, no used slot.
  static Result<SlotSchema> Create(const DataFeedDesc& desc);

  /// Every slot, in line order.
  const std::vector<SlotSpec>& all() const { return slots_; }
  /// Used slots by SlotId.
  const std::vector<SlotSpec>& used() const { return used_; }
  int used_count() const { return static_cast<int>(used_.size()); }
  /// The used slot with this name, or -1.
  SlotId Find(std::string_view name) const;
  /// Whether features make the slots; messages then advise on features, because users do not write slots.
  bool is_of_features() const { return is_of_features_; }

 private:
  std::vector<SlotSpec> slots_;
  std::vector<SlotSpec> used_;
  bool is_of_features_ = false;
};

/// Expands "C1..C26" to 26 names; a name without ".." is returned alone. Fails with kInvalidConfig for "C26..C1" and
/// "C1..D3".
Result<std::vector<std::string>> ExpandSlotRange(std::string_view name);

}  // namespace millrace
