#include "datafeed/feature_feed.h"

#include <algorithm>
#include <string>

namespace millrace {

LineResult FeatureFeed::Read(std::string_view line) {
  if (const Status parsed = record_->Parse(line); !parsed.ok()) {
    if (format_ == FeatureRecord::Format::kTfRecord) {
      Fail(LineErrorKind::kDamaged, "", parsed.message());
    } else {
      FailForGood(LineErrorKind::kDamaged, "", parsed.message());
    }
    return LineResult::kBad;
  }
  const std::vector<SlotSpec>& slots = schema().used();
  const bool is_whole =
      std::all_of(slots.begin(), slots.end(), [this](const SlotSpec& slot) { return ReadSlot(slot); });
  return is_whole ? LineResult::kRow : LineResult::kBad;
}

bool FeatureFeed::ReadSlot(const SlotSpec& slot) {
  FeatureValues values;
  const bool is_there = record_->Find(slot.name, &values);
  if (!is_there && (slot.is_dense || !options().allow_empty_slots)) {
    return Fail(LineErrorKind::kMissingValues, slot.name, record_->Missing(slot.name));
  }
  const bool is_none = FeatureSize(values) == 0;
  if (slot.type == SlotType::kFloat) {
    if (is_none) return Put(slot, std::span<const float>());
    if (const auto* floats = std::get_if<std::span<const float>>(&values)) return Put(slot, *floats);
  } else {
    if (is_none) return Put(slot, std::span<const uint64_t>());
    if (const auto* ids = std::get_if<std::span<const int64_t>>(&values)) return PutSigned(slot, *ids);
    if (const auto* narrow = std::get_if<std::span<const int32_t>>(&values)) {
      wide_.assign(narrow->begin(), narrow->end());
      return PutSigned(slot, wide_);
    }
  }
  return Fail(LineErrorKind::kBadValue, slot.name,
              "the feature holds a list of " + std::string(FeatureTypeName(values)) + "; a slot of type \"" +
                  (slot.type == SlotType::kFloat ? "float\" takes float32" : "uint64\" takes int64"));
}

}  // namespace millrace
