#include "dataset/label_thinning.h"

namespace millrace {

Result<LabelThinning> LabelThinning::Create(const ThinnedLabel& label, const SlotSchema& schema) {
  LabelThinning thinning;
  if (label.slot.empty() || label.rate >= 1) return thinning;
  const SlotId found = schema.Find(label.slot);
  if (found < 0) return InvalidConfig("model.downsample.label: no used slot \"" + label.slot + "\"");
  const SlotSpec& slot = schema.used()[static_cast<size_t>(found)];
  if (!slot.is_dense || slot.width != 1) {
    return InvalidConfig("model.downsample.label: slot \"" + label.slot + "\" must have one value an example");
  }
  thinning.label_ = found;
  thinning.is_float_ = slot.type == SlotType::kFloat;
  thinning.value_ = label.value;
  thinning.kept_ = LineShare(label.draw, 0, label.rate, true);
  return thinning;
}

bool LabelThinning::Keeps(const SlotBatch& batch, int row, uint64_t line) {
  const auto at = static_cast<size_t>(row);
  const float label = is_float_ ? batch.floats(label_)[at] : static_cast<float>(batch.ids(label_)[at]);
  return label != value_ || !kept_.Excludes(line);
}

}  // namespace millrace
