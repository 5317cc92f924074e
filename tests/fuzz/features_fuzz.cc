// Features of any description, up to the first byte 0, on rows of any text, which stand behind it. Whatever the bytes
// are: no crash; a description that is refused says at which of its fields; dense features have the values that their
// slots say; a row that was refused says which column it was; and the same row twice gives the same values.

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data_feed.pb.h"
#include "features/csv_cutter.h"
#include "features/feature_row.h"
#include "features/feature_spec.h"
#include "fuzz/demand.h"

namespace millrace {
namespace {

void CheckRow(FeatureRow& row, std::span<const std::string_view> columns, const std::string& text) {
  const bool is_made = row.Make(columns);
  if (!is_made) {
    Demand(!row.error().expected.empty(), "a failure says what was expected", text);
    Demand(row.error().feature < static_cast<int>(row.plan().features().size()), "a failure is one of a feature", text);
    return;
  }
  std::vector<std::vector<uint64_t>> ids;
  for (size_t i = 0; i < row.plan().features().size(); ++i) {
    const FeaturePlan::Feature& feature = row.plan().features()[i];
    const size_t count = row.ids(static_cast<int>(i)).size() + row.floats(static_cast<int>(i)).size();
    if (feature.is_dense) Demand(count == feature.columns.size(), "a dense feature has a value of each column", text);
    Demand(feature.makes_ids ? row.floats(static_cast<int>(i)).empty() : row.ids(static_cast<int>(i)).empty(),
           "values of the feature's type", text);
    ids.emplace_back(row.ids(static_cast<int>(i)).begin(), row.ids(static_cast<int>(i)).end());
  }
  Demand(row.Make(columns), "the same row again", text);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto again = row.ids(static_cast<int>(i));
    Demand(std::equal(ids[i].begin(), ids[i].end(), again.begin(), again.end()), "the same values again", text);
  }
}

void CheckRows(const DataFeedDesc& desc, std::string_view rows) {
  std::vector<FeatureMistake> mistakes;
  const std::vector<FeatureSpec> specs = ReadFeatures(desc, &mistakes);
  std::vector<std::string> slots;
  for (const FeatureSpec& spec : specs) slots.push_back(spec.name);
  for (const FeatureMistake& mistake : mistakes) {
    const bool has_place = mistake.path.starts_with("feature[") || mistake.path.starts_with("csv.");
    Demand(has_place && !mistake.message.empty(), "a mistake says its field", mistake.message);
  }
  const Result<std::shared_ptr<const FeaturePlan>> plan = FeaturePlan::Create(desc, slots);
  Demand(mistakes.empty() || !plan.ok(), "what is wrong is not compiled", desc.ShortDebugString());
  if (!plan.ok()) return;
  FeatureRow row(*plan);
  const std::vector<std::string>& columns = (*plan)->columns();
  std::vector<int> places(columns.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i);
  std::vector<std::string_view> texts(columns.size());
  std::vector<size_t> begins(columns.size());
  CsvCutter cutter({});
  while (!rows.empty()) {
    const size_t end = std::min(rows.find('\n'), rows.size());
    std::string line(rows.substr(0, end));
    rows.remove_prefix(std::min(end + 1, rows.size()));
    const size_t length = line.size();
    line.append(64, '7');
    std::fill(texts.begin(), texts.end(), std::string_view(line).substr(0, 0));
    if (!cutter.Cut(std::string_view(line).substr(0, length), places, texts, begins)) continue;
    CheckRow(row, texts, line);
  }
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  millrace::DataFeedDesc desc;
  google::protobuf::TextFormat::Parser parser;
  class Silent : public google::protobuf::io::ErrorCollector {
    void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  } silent;
  parser.RecordErrorsTo(&silent);
  if (!parser.ParseFromString(std::string(bytes.substr(0, end)), &desc)) return 0;
  millrace::CheckRows(desc, bytes.substr(std::min(end + 1, size)));
  return 0;
}
