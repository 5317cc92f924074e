#pragma once

#include <cstdint>
#include <vector>

#include "table/row_batch.h"

namespace millrace {

/// What fused_slots_pool found out about a batch and its gradient goes on with: for each distinct parameter its
/// distinct keys, where their rows are, and which of them each id means. Value of the variable Rows; buffers keep their
/// capacity.
struct SlotRows {
  struct Parameter {
    std::vector<uint64_t> keys;
    /// One a key.
    RowBatch pulled;
    /// For each id of the parameter's slots, slot after slot, the number of its key, or keys.size() for none.
    std::vector<uint32_t> index;
    /// Where each of these slots begins in `index`.
    std::vector<size_t> slot_begin;
    bool has_rowless_ids = false;
  };
  std::vector<Parameter> parameters;  ///< in the order of their first slot
};

}  // namespace millrace
