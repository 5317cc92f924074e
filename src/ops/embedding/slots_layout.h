#pragma once

#include <cstdint>
#include <span>
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

/// Where the sequences of a slot's ids begin and end. Belongs to one kernel; one thread.
class SlotOffsets {
 public:
  /// The LoD of `ids`, or 0, 1, 2, ... for one id a row. Valid until the next call.
  std::span<const uint32_t> Of(const Tensor& ids);

 private:
  std::vector<uint32_t> counting_;
};

/// SUM, AVERAGE or SQRT, in capitals or not.
Result<racy::Pooling> ParsePooling(const std::string& pooltype);

}  // namespace millrace
