#include "datafeed/libsvm_column_feed.h"

#include <algorithm>
#include <string>

#include "core/numbers.h"
#include "data_feed.pb.h"
#include "reader/field_value.h"
#include "reader/libsvm_line.h"

namespace millrace {
namespace {

/// "0", "0.0": equal to a missing index.
bool IsZero(std::string_view value) {
  double number = 1;
  return value.find_first_not_of("+-.0") == std::string_view::npos && ReadNumber(value, &number) && number == 0;
}

}  // namespace

Result<std::unique_ptr<DataFeed>> LibsvmColumnFeed::Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                           const ColumnSetup& setup) {
  std::unique_ptr<LibsvmColumnFeed> feed(new LibsvmColumnFeed(schema, setup, desc));
  feed->first_ = desc.libsvm().zero_based() ? 0 : 1;
  const std::vector<std::string>& columns = feed->plan().columns();
  for (size_t i = 0; i < columns.size(); ++i) {
    uint64_t index = 0;
    if (columns[i] == "label") {
      feed->label_ = static_cast<int>(i);
    } else if (columns[i] == "qid") {
      feed->qid_ = static_cast<int>(i);
    } else if (columns[i] == "index") {
      feed->index_ = static_cast<int>(i);
    } else if (ParseInteger(columns[i], &index) == IntegerText::kOk && index >= feed->first_ &&
               std::to_string(index) == columns[i]) {
      feed->wanted_.emplace_back(index, i);
    } else {
      return InvalidConfig("data_desc.feature: lines of libsvm have no column \"" + columns[i] +
                           "\": their columns are \"label\", \"qid\", \"index\" (the indices of a line) and, by their "
                           "indices, \"1\", \"2\" and so on (from \"0\" on with libsvm { zero_based: true })");
    }
  }
  std::sort(feed->wanted_.begin(), feed->wanted_.end());
  feed->lists_.resize(feed->index_ < 0 ? 0 : columns.size());
  feed->hashed_of_.resize(columns.size());
  for (const FeaturePlan::Feature& feature : feed->plan().features()) {
    const bool has_words = feature.kind == FeaturePlan::Kind::kText || feature.kind == FeaturePlan::Kind::kWord;
    if (!has_words || feature.columns.size() < 2) continue;
    for (const int column : feature.columns)
      feed->hashed_of_[static_cast<size_t>(column)].push_back(feed->hashed_.size());
    feed->hashed_.push_back({feature.name, false, false});
  }
  return std::unique_ptr<DataFeed>(std::move(feed));
}

ValueNames LibsvmColumnFeed::names() const {
  ValueNames names = ColumnFeed::names();
  for (const Hashed& hashed : hashed_) {
    if (hashed.has_ones || hashed.has_others) names.all_ones[hashed.feature] = !hashed.has_others;
  }
  return names;
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
    texts()[static_cast<size_t>(label_)] = Taken(label);
    begins()[static_cast<size_t>(label_)] = place(label);
  }
  indices_.clear();
  bool is_first = true;
  uint64_t next = first_;  // smallest allowed index
  auto wanted = wanted_.begin();
  for (std::string_view token = parts.Next(); !token.empty(); token = parts.Next(), is_first = false) {
    const size_t colon = token.find(':');
    uint64_t index = 0;
    if (is_first && token.starts_with("qid:")) {
      if (qid_ < 0) continue;
      texts()[static_cast<size_t>(qid_)] = Taken(token.substr(colon + 1));
      begins()[static_cast<size_t>(qid_)] = place(token) + colon + 1;
      continue;
    }
    if (colon == std::string_view::npos || ParseInteger(token.substr(0, colon), &index) != IntegerText::kOk) {
      Fail(LineErrorKind::kBadValue, "", "expected INDEX:VALUE, found " + ShownField(token), place(token) + 1);
      return LineResult::kBad;
    }
    if (index < next) {
      Fail(LineErrorKind::kBadValue, "",
           "expected an index above " + std::to_string(next - 1) + ", found " + ShownField(token) +
               (index == 0 && next == 1
                    ? "; where indices begin at 0, as scikit-learn writes them, say libsvm { zero_based: true }"
                    : ""),
           place(token) + 1);
      return LineResult::kBad;
    }
    next = index + 1;
    const std::string_view written = token.substr(colon + 1);
    const std::string_view value = Taken(written);
    if (value.empty() && !written.empty()) continue;  // treated as missing
    if (index_ >= 0 && !IsZero(value)) {
      const std::string_view digits = token.substr(0, colon);
      indices_.push_back(digits.substr(std::min(digits.find_first_not_of("+0"), colon - 1)));
    }
    while (wanted != wanted_.end() && wanted->first < index) ++wanted;
    if (wanted == wanted_.end() || wanted->first != index) continue;
    texts()[wanted->second] = value;
    begins()[wanted->second] = place(token) + colon + 1;
    for (const size_t hashed : hashed_of_[wanted->second]) {
      bool& has = value == "1" || value == "1.0" ? hashed_[hashed].has_ones : hashed_[hashed].has_others;
      has = true;
    }
  }
  if (index_ < 0) return PutRow(line);
  lists_[static_cast<size_t>(index_)] = indices_;
  return PutRow(line, lists_);
}

}  // namespace millrace
