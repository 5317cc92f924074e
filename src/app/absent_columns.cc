#include "app/absent_columns.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "data_feed.pb.h"
#include "datafeed/csv_column_feed.h"
#include "datafeed/input_opener.h"
#include "features/feature_plan.h"

namespace millrace {
namespace {

/// The first line of a file, without its end; of what is longer than a header is, nothing.
Result<std::string> FirstLineOf(const DataFeedDesc& desc, const std::string& file, const std::stop_token& stop) {
  constexpr size_t kLongest = size_t{1} << 24;
  MR_ASSIGN(const std::unique_ptr<InputOpener> opener, InputOpener::Create(desc, {file}, stop));
  MR_ASSIGN(const OpenedInput input, opener->Open(file));
  std::string line;
  std::array<char, 4096> bytes;
  while (line.size() < kLongest) {
    MR_ASSIGN(const size_t count, input.source->Read(bytes, stop));
    line.append(bytes.data(), count);
    const size_t end = line.find('\n');
    if (end != std::string::npos) line.resize(end);
    if (end != std::string::npos || count == 0) return line;
  }
  return std::string();
}

}  // namespace

Result<std::vector<AbsentSlot>> FindAbsentSlots(const Predictor& predictor, const DataFeedDesc& desc,
                                                const std::string& file, const std::stop_token& stop) {
  std::vector<AbsentSlot> absent;
  std::error_code none;
  const bool has_header = desc.name() == "csv" && desc.feature_size() > 0 && desc.csv().names_size() == 0;
  if (!has_header || !PipeCommandOf(desc).empty() || !std::filesystem::is_regular_file(file, none)) return absent;
  const Result<std::string> line = FirstLineOf(desc, file, stop);
  if (line.status().code() == StatusCode::kCancelled) return line.status();
  if (!line.ok()) return absent;
  const Result<std::vector<std::string>> names = CsvHeaderNames(CsvHeaderOf(desc)(*line), desc);
  if (!names.ok()) return absent;
  const std::vector<std::string>& feeds = predictor.feeds();
  // Of a file that lacks what scores depend on, or is cut by another delimiter, the reading of its rows says what is
  // wrong.
  const Result<std::shared_ptr<const FeaturePlan>> needed = FeaturePlan::Create(desc, feeds);
  if (!needed.ok()) return absent;
  for (const std::string& column : (*needed)->columns()) {
    if (std::find(names->begin(), names->end(), column) == names->end()) return absent;
  }
  for (const Slot& slot : desc.multi_slot_desc().slots()) {
    if (!slot.is_used() || std::find(feeds.begin(), feeds.end(), slot.name()) != feeds.end()) continue;
    const Result<std::shared_ptr<const FeaturePlan>> plan = FeaturePlan::Create(desc, std::array{slot.name()});
    if (!plan.ok()) continue;
    for (const std::string& column : (*plan)->columns()) {
      if (std::find(names->begin(), names->end(), column) != names->end()) continue;
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

}  // namespace millrace
