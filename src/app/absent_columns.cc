#include "app/absent_columns.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "data_feed.pb.h"
#include "datafeed/csv_column_feed.h"
#include "datafeed/input_opener.h"
#include "datafeed/json_column_feed.h"
#include "features/feature_plan.h"

namespace millrace {
namespace {

/// A file's bytes up to `end`, without it, or all, but for the bytes of `left_out` at their begin; of what is longer
/// than names are, nothing.
Result<std::string> BytesBefore(std::optional<char> end, const DataFeedDesc& desc, const LineCut& cut,
                                const std::string& file, const std::stop_token& stop, std::string_view left_out = "") {
  constexpr size_t kLongest = size_t{1} << 24;
  MR_ASSIGN(const std::unique_ptr<InputOpener> opener, InputOpener::Create(desc, {file}, stop, cut));
  MR_ASSIGN(const OpenedInput input, opener->Open(file));
  std::string bytes;
  std::array<char, 4096> some;
  while (bytes.size() < kLongest) {
    MR_ASSIGN(const size_t count, input.source->Read(some, stop));
    bytes.append(some.data(), count);
    bytes.erase(0, std::min(bytes.find_first_not_of(left_out), bytes.size()));
    const size_t found = end.has_value() ? bytes.find(*end) : std::string::npos;
    if (found != std::string::npos) bytes.resize(found);
    if (found != std::string::npos || count == 0) return bytes;
  }
  return std::string();
}

/// The names of a file's columns; none where it has no names.
Result<std::vector<std::string>> NamesOf(const DataFeedFactory& feeds, const DataFeedDesc& desc,
                                         const std::string& file, const std::stop_token& stop) {
  std::vector<std::string> names;
  const FeedKind* const kind = feeds.Find(desc.name());
  if (kind == nullptr || desc.feature_size() == 0 || !PipeCommandOf(desc).empty()) return names;
  if (kind->names_command != nullptr) {
    const LineCut cut{.command = kind->names_command()};
    MR_ASSIGN(const std::string bytes, BytesBefore(std::nullopt, desc, cut, file, stop));
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t end = std::min(bytes.find('\0', begin), bytes.size());
      names.push_back(bytes.substr(begin, end - begin));
      begin = end + 1;
    }
    return names;
  }
  const bool has_header = desc.name() == "csv" && desc.csv().names_size() == 0;
  if (!has_header && desc.name() != "json") return names;
  // Blank lines and a byte order mark are no line of JSON, and the reading knows that.
  const std::string_view left_out = has_header ? "" : "\xEF\xBB\xBF \t\r\n";
  MR_ASSIGN(const std::string line, BytesBefore('\n', desc, {}, file, stop, left_out));
  if (!has_header) return JsonColumnNames(line);
  return CsvHeaderNames(CsvHeaderOf(desc)(line), desc);
}

}  // namespace

Result<std::vector<AbsentSlot>> FindAbsentSlots(const Predictor& predictor, const DataFeedFactory& feeds,
                                                const DataFeedDesc& desc, const std::string& file,
                                                const std::stop_token& stop) {
  std::vector<AbsentSlot> absent;
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return absent;
  const Result<std::vector<std::string>> names = NamesOf(feeds, desc, file, stop);
  if (names.status().code() == StatusCode::kCancelled) return names.status();
  if (!names.ok() || names->empty()) return absent;
  const std::vector<std::string>& fed = predictor.feeds();
  // Of a file that lacks what scores depend on, or is cut by another delimiter, the reading of its rows says what is
  // wrong.
  const Result<std::shared_ptr<const FeaturePlan>> needed = FeaturePlan::Create(desc, fed);
  if (!needed.ok()) return absent;
  const bool names_differ = desc.name() == "json";  // from line to line
  for (const std::string& column : (*needed)->columns()) {
    if (!names_differ && std::find(names->begin(), names->end(), column) == names->end()) return absent;
  }
  for (const Slot& slot : desc.multi_slot_desc().slots()) {
    if (!slot.is_used() || std::find(fed.begin(), fed.end(), slot.name()) != fed.end()) continue;
    const Result<std::shared_ptr<const FeaturePlan>> plan = FeaturePlan::Create(desc, std::array{slot.name()});
    if (!plan.ok()) continue;
    // Other lines may have what the first one lacks: only what would end the reading there is left out.
    const FeaturePlan::Feature& feature = (*plan)->features()[static_cast<size_t>((*plan)->FeatureOfSlot(0))];
    if (names_differ && (!feature.is_dense || feature.has_default)) continue;
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
