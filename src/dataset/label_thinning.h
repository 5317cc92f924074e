#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batch/slot_batch.h"
#include "batch/slot_schema.h"
#include "core/status.h"
#include "dataset/line_draw.h"

namespace millrace {

/// Of which examples a dataset keeps a share: ModelDesc.downsample.
struct ThinnedLabel {
  std::string slot;  ///< empty: of none
  float value = 0;
  double rate = 1;  ///< the share that stays
  LineDraw draw = {};
};

/// Leaves out examples of one label, by the numbers that a LineDraw gives their lines. Constant and thread-safe.
class LabelThinning {
 public:
  /// Leaves out nothing.
  LabelThinning() = default;
  /// kInvalidConfig for a slot that is not there or has not one value a row.
  static Result<LabelThinning> Create(const ThinnedLabel& label, const SlotSchema& schema);

  bool is_active() const { return label_ >= 0; }
  /// What Keeps asks for of a file.
  uint64_t SeedOf(std::string_view file, uint32_t number) const { return thinned_.draw.SeedOf(file, number); }
  /// Whether row `row` of the batch, line `line` of its file, stays.
  bool Keeps(const SlotBatch& batch, int row, uint64_t file_seed, uint64_t line) const;

 private:
  SlotId label_ = -1;
  bool is_float_ = false;
  ThinnedLabel thinned_;
};

}  // namespace millrace
