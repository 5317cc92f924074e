#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batch/slot_batch.h"
#include "batch/slot_schema.h"
#include "core/status.h"
#include "dataset/line_draw.h"

namespace millrace {

/// The examples that are downsampled: ModelDesc.downsample.
struct ThinnedLabel {
  std::string slot;  ///< empty: none
  float value = 0;
  double rate = 1;  ///< fraction to keep
  LineDraw draw = {};
};

/// Removes a fraction of the examples with one label, by the number that a LineDraw gives their lines, and counts them.
/// One thread; a copy has its own count.
class LabelThinning {
 public:
  /// Removes nothing.
  LabelThinning() = default;
  /// Fails with kInvalidConfig if the slot is unknown or does not have exactly one value per row.
  static Result<LabelThinning> Create(const ThinnedLabel& label, const SlotSchema& schema);

  bool is_active() const { return label_ >= 0; }
  void BeginFile(std::string_view file, uint32_t number) { kept_.BeginFile(file, number); }
  /// Whether to keep row `row` of the batch, which is line `line` of the file.
  bool Keeps(const SlotBatch& batch, int row, uint64_t line);
  int64_t removed() const { return kept_.excluded(); }

 private:
  SlotId label_ = -1;
  bool is_float_ = false;
  float value_ = 0;
  LineShare kept_;
};

}  // namespace millrace
