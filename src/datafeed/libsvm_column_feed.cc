#include "datafeed/libsvm_column_feed.h"

#include <algorithm>
#include <string>

#include "core/integer_text.h"
#include "reader/field_value.h"
#include "reader/libsvm_line.h"

namespace millrace {

Result<std::unique_ptr<DataFeed>> LibsvmColumnFeed::Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                           const ColumnSetup& setup) {
  std::unique_ptr<LibsvmColumnFeed> feed(new LibsvmColumnFeed(schema, setup, desc));
  const std::vector<std::string>& columns = feed->plan().columns();
  for (size_t i = 0; i < columns.size(); ++i) {
    uint64_t index = 0;
    if (columns[i] == "label") {
      feed->label_ = static_cast<int>(i);
    } else if (ParseInteger(columns[i], &index) == IntegerText::kOk && index > 0 &&
               std::to_string(index) == columns[i]) {
      feed->wanted_.emplace_back(index, i);
    } else {
      return InvalidConfig("data_desc.feature: lines of libsvm have no column \"" + columns[i] +
                           "\": their columns are \"label\" and, by their indices, \"1\", \"2\" and so on");
    }
  }
  std::sort(feed->wanted_.begin(), feed->wanted_.end());
  return std::unique_ptr<DataFeed>(std::move(feed));
}

LineResult LibsvmColumnFeed::Read(std::string_view line) {
  LibsvmLine parts(line);
  const std::string_view label = parts.Next();
  if (label.empty()) {
    ++counted().blank_lines;
    return LineResult::kBlank;
  }
  const auto place = [&](std::string_view token) { return static_cast<size_t>(token.data() - line.data()); };
  std::fill(texts().begin(), texts().end(), line.substr(0, 0));
  std::fill(begins().begin(), begins().end(), line.size());
  if (label_ >= 0) {
    texts()[static_cast<size_t>(label_)] = label;
    begins()[static_cast<size_t>(label_)] = place(label);
  }
  uint64_t last = 0;
  auto wanted = wanted_.begin();
  for (std::string_view token = parts.Next(); !token.empty(); token = parts.Next()) {
    const size_t colon = token.find(':');
    uint64_t index = 0;
    if (colon == std::string_view::npos || ParseInteger(token.substr(0, colon), &index) != IntegerText::kOk) {
      Fail(LineErrorKind::kBadValue, "", "expected INDEX:VALUE, found " + ShownField(token), place(token) + 1);
      return LineResult::kBad;
    }
    if (index <= last) {
      Fail(LineErrorKind::kBadValue, "",
           "expected an index above " + std::to_string(last) + ", found " + ShownField(token), place(token) + 1);
      return LineResult::kBad;
    }
    last = index;
    while (wanted != wanted_.end() && wanted->first < index) ++wanted;
    if (wanted == wanted_.end() || wanted->first != index) continue;
    texts()[wanted->second] = token.substr(colon + 1);
    begins()[wanted->second] = place(token) + colon + 1;
  }
  return PutRow(line);
}

}  // namespace millrace
