#include "serving/absent_slots.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "data_feed.pb.h"
#include "datafeed/file_columns.h"
#include "features/feature_plan.h"

namespace millrace {

std::vector<AbsentSlot> AbsentSlotsOf(const Predictor& predictor, const DataFeedDesc& desc,
                                      const std::vector<std::string>& names) {
  std::vector<AbsentSlot> absent;
  const std::vector<std::string>& fed = predictor.feeds();
  const Result<std::shared_ptr<const FeaturePlan>> needed = FeaturePlan::Create(desc, fed);
  if (names.empty() || !needed.ok()) return absent;
  const bool names_differ = desc.name() == "json";  // between lines
  const std::vector<std::string>& columns = (*needed)->columns();
  const bool has_any = std::any_of(columns.begin(), columns.end(), [&](const std::string& column) {
    return std::find(names.begin(), names.end(), column) != names.end();
  });
  if (!names_differ && !columns.empty() && !has_any) return absent;
  for (const Slot& slot : desc.multi_slot_desc().slots()) {
    if (!slot.is_used() || std::find(fed.begin(), fed.end(), slot.name()) != fed.end()) continue;
    const Result<std::shared_ptr<const FeaturePlan>> plan = FeaturePlan::Create(desc, std::array{slot.name()});
    if (!plan.ok()) continue;
    // Other lines may have what the first lacks: only report slots for which reading would fail.
    const FeaturePlan::Feature& feature = (*plan)->features()[static_cast<size_t>((*plan)->FeatureOfSlot(0))];
    if (names_differ && (!feature.is_dense || feature.has_default)) continue;
    for (const std::string& column : (*plan)->columns()) {
      if (std::find(names.begin(), names.end(), column) != names.end()) continue;
      AbsentSlot& found = absent.emplace_back(AbsentSlot{slot.name(), column, {}});
      for (const ModelTask& task : predictor.tasks()) {
        if (slot.name() == task.label() || slot.name() == task.sample_weight() || slot.name() == task.mask()) {
          found.tasks.push_back(task.name());
        }
      }
      break;
    }
  }
  return absent;
}

Result<std::vector<AbsentSlot>> FindAbsentSlots(const Predictor& predictor, const DataFeedFactory& feeds,
                                                const DataFeedDesc& desc, const std::string& file,
                                                const std::stop_token& stop) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return std::vector<AbsentSlot>();
  const Result<FileColumns> columns = ColumnsOfFile(feeds, desc, file, stop);
  if (columns.status().code() == StatusCode::kCancelled) return columns.status();
  return columns.ok() ? AbsentSlotsOf(predictor, desc, columns->names) : std::vector<AbsentSlot>();
}

}  // namespace millrace
