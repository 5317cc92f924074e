#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/racy.h"
#include "runtime/op_kernel.h"

namespace millrace {

/// How the slots of a fused_slots_pool share parameters and where each stands in the output. Immutable.
struct SlotsLayout {
  struct Parameter {
    size_t first_slot = 0;  ///< position of its first W
    std::vector<size_t> slots;
  };

  racy::Pooling pooling = racy::Pooling::kSum;
  size_t slots = 0;
  std::vector<Parameter> parameters;
  std::vector<int64_t> dense_at;

  /// Reads Ids, W, pooltype and dense_at; kInvalidConfig when they do not fit together.
  static Result<SlotsLayout> Create(const OpView& op);

  /// First column of each slot and of each dense input, given their widths; returns the number of all columns.
  size_t Columns(const std::vector<size_t>& slot_widths, const std::vector<size_t>& dense_widths,
                 std::vector<size_t>* slot_columns, std::vector<size_t>* dense_columns) const;
};

/// SUM, AVERAGE or SQRT, in capitals or not.
Result<racy::Pooling> ParsePooling(const std::string& pooltype);

}  // namespace millrace
