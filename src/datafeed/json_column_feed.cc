#include "datafeed/json_column_feed.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/edit_distance.h"
#include "core/numbers.h"

namespace millrace {
namespace {

using simdjson::error_code;
using simdjson::ondemand::json_type;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

// With readable padding.
constexpr char kOne[kNumberPadding + 2] = "1";
constexpr char kZero[kNumberPadding + 2] = "0";
constexpr std::string_view kMissing = std::string_view(kZero).substr(0, 0);

/// Hints for input often mistaken for JSON.
std::string HintOn(std::string_view line, bool is_first) {
  if (const std::string columnar = is_first ? ColumnarFormatAdvice(line) : ""; !columnar.empty())
    return "; " + columnar;
  if (is_first && line.find_first_of("{[") == line.npos && line.find_first_of(",;\t") != line.npos) {
    return "; " + FormatAdvice("CSV, as it seems", "csv");
  }
  if (line.starts_with('[')) return "; each line is to be an object of its own, without [ ] around all of them";
  for (const std::string_view value : {":NaN", ": NaN", ":Infinity", ": Infinity", ":-Infinity", ": -Infinity"}) {
    if (line.find(value) != line.npos) return "; JSON has no NaN and no Infinity: write null";
  }
  return "";
}

class JsonLines final : public ColumnFeed {
 public:
  JsonLines(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc)
      : ColumnFeed(schema, setup, desc), elements_(texts().size()), lists_(texts().size()), seen_(texts().size()) {
    for (size_t i = 0; i < plan().columns().size(); ++i) {
      unnamed_.push_back(i);
      const std::string& column = plan().columns()[i];
      places_.emplace(column, i);
      for (size_t dot = column.find('.'); dot != std::string::npos; dot = column.find('.', dot + 1)) {
        parents_.insert(column.substr(0, dot));
      }
    }
  }

  ValueNames names() const override {
    ValueNames names = ColumnFeed::names();
    names.lines = lines_;  // also of rows that are bad but contain keys
    names.some = first_names_;
    for (const size_t column : unnamed_) names.absent.insert(plan().columns()[column]);
    return names;
  }

 private:
  static constexpr size_t kNoColumn = SIZE_MAX;

  LineResult Read(std::string_view line) override {
    if (std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r'; })) {
      ++counted().blank_lines;
      return LineResult::kBlank;
    }
    // The parser requires its own padding after the text and can write there.
    if (buffer_.size() < line.size() + simdjson::SIMDJSON_PADDING) {
      buffer_.resize(2 * (line.size() + simdjson::SIMDJSON_PADDING));
    }
    std::memcpy(buffer_.data(), line.data(), line.size());
    std::memset(buffer_.data() + line.size(), 0, simdjson::SIMDJSON_PADDING);
    std::fill(texts().begin(), texts().end(), kMissing);
    std::fill(begins().begin(), begins().end(), line.size());
    std::fill(lists_.begin(), lists_.end(), FeatureRow::List());
    std::fill(seen_.begin(), seen_.end(), false);
    path_.clear();
    has_failed_ = false;
    const error_code error = Walk(line);
    if (!unnamed_.empty()) std::erase_if(unnamed_, [this](size_t column) { return seen_[column]; });
    if (has_failed_) return LineResult::kBad;
    if (error != simdjson::SUCCESS) {
      Fail(LineErrorKind::kBadValue, "",
           (path_.empty() ? "expected a JSON object" : "key \"" + path_ + "\": expected JSON") +
               std::string(", found what is none: ") + simdjson::error_message(error) + HintOn(line, lines_ == 0));
      return LineResult::kBad;
    }
    ++lines_;
    for (size_t i = 0; i < elements_.size(); ++i) {
      if (seen_[i] && !elements_[i].empty()) lists_[i] = elements_[i];
    }
    if (plan().times().has_value() && !seen_[static_cast<size_t>(plan().times()->column)]) return FailTime();
    return PutRow({buffer_.data(), line.size()}, lists_);
  }

  error_code Walk(std::string_view line) {
    // On-demand parsing skips unused values; only a full parse validates the whole line.
    simdjson::dom::element checked;
    if (const error_code error = checker_.parse(buffer_.data(), line.size(), false).get(checked)) return error;
    simdjson::ondemand::document document;
    if (const error_code error = parser_.iterate(buffer_.data(), line.size(), buffer_.size()).get(document))
      return error;
    object whole;
    if (const error_code error = document.get_object().get(whole)) return error;
    return WalkObject(whole);
  }

  error_code WalkObject(object& fields) {
    for (auto field : fields) {
      std::string_view key;
      if (const error_code error = field.unescaped_key().get(key)) return error;
      const size_t before = path_.size();
      if (before > 0) path_ += '.';
      path_ += key;
      if (lines_ == 0) first_names_.insert(path_);
      const size_t column = PlaceOf(path_);
      if (column != kNoColumn || parents_.contains(path_)) {
        value of_key;
        if (const error_code error = field.value().get(of_key)) return error;
        if (const error_code error = WalkValue(of_key, column)) return error;
      }
      path_.resize(before);
    }
    return simdjson::SUCCESS;
  }

  /// Processes a column's value or, without a column, nested columns.
  error_code WalkValue(value& taken, size_t column) {
    json_type type{};
    if (const error_code error = taken.type().get(type)) return error;
    if (column == kNoColumn) {
      object fields;
      if (type != json_type::object) return simdjson::SUCCESS;
      if (const error_code error = taken.get_object().get(fields)) return error;
      return WalkObject(fields);
    }
    const char* location = nullptr;
    if (taken.current_location().get(location) == simdjson::SUCCESS) {
      begins()[column] = static_cast<size_t>(location - buffer_.data());
    }
    if (seen_[column]) return FailColumn(column, "expected the key once in a line, found it twice");
    seen_[column] = true;
    elements_[column].clear();
    if (type == json_type::object) {
      return FailColumn(column, "expected a text, a number or a list of them, found an object");
    }
    if (type == json_type::array) {
      simdjson::ondemand::array elements;
      if (const error_code error = taken.get_array().get(elements)) return error;
      return WalkElements(elements, column);
    }
    const error_code error = TextOf(taken, type, &texts()[column]);
    texts()[column] = Taken(texts()[column]);
    return error;
  }

  error_code WalkElements(simdjson::ondemand::array& elements, size_t column) {
    for (auto element : elements) {
      value of_array;
      if (const error_code error = element.get(of_array)) return error;
      json_type type{};
      if (const error_code error = of_array.type().get(type)) return error;
      if (type == json_type::object || type == json_type::array) {
        return FailColumn(column, "expected a list of texts and numbers, found one within it");
      }
      std::string_view text;
      if (const error_code error = TextOf(of_array, type, &text)) return error;
      if (text = Taken(text); !text.empty()) elements_[column].push_back(text);
    }
    return simdjson::SUCCESS;
  }

  /// The string of a value that is not an object or array.
  static error_code TextOf(value& scalar, json_type type, std::string_view* text) {
    switch (type) {
      case json_type::string: return scalar.get_string().get(*text);
      case json_type::number: {
        std::string_view token = scalar.raw_json_token();
        while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
        *text = token;
        return simdjson::SUCCESS;
      }
      case json_type::boolean: {
        bool is_true = false;
        const error_code error = scalar.get_bool().get(is_true);
        *text = {is_true ? kOne : kZero, 1};
        return error;
      }
      default: *text = kMissing; return simdjson::SUCCESS;
    }
  }

  /// For a line without the key of the row times.
  LineResult FailTime() {
    const std::string& column = plan().columns()[static_cast<size_t>(plan().times()->column)];
    const std::vector<std::string_view> known(first_names_.begin(), first_names_.end());
    Fail(LineErrorKind::kMissingValues, "",
         "no key \"" + column + "\", by which eval.set.since parts rows" + DidYouMean(column, known));
    return LineResult::kBad;
  }

  error_code FailColumn(size_t column, const std::string& message) {
    Fail(LineErrorKind::kBadValue, "", "column \"" + plan().columns()[column] + "\": " + message, begins()[column] + 1);
    has_failed_ = true;
    return simdjson::INCORRECT_TYPE;
  }

  size_t PlaceOf(std::string_view path) const {
    const auto found = places_.find(path);
    return found == places_.end() ? kNoColumn : found->second;
  }

  std::map<std::string, size_t, std::less<>> places_;  ///< of columns
  std::set<std::string, std::less<>> parents_;         ///< paths of objects with nested columns
  simdjson::dom::parser checker_;
  simdjson::ondemand::parser parser_;
  std::vector<char> buffer_;                             ///< the line and its padding
  std::string path_;                                     ///< of the current key
  std::vector<std::vector<std::string_view>> elements_;  ///< of arrays, by column
  std::vector<FeatureRow::List> lists_;
  std::vector<bool> seen_;
  std::vector<size_t> unnamed_;  ///< columns not yet named by a line
  int64_t lines_ = 0;            ///< JSON lines
  std::set<std::string> first_names_;
  bool has_failed_ = false;
};

void AddNames(const simdjson::dom::object& fields, const std::string& before, std::vector<std::string>* names) {
  for (const auto [key, value] : fields) {
    const std::string name = before + std::string(key);
    if (!value.is_null()) names->push_back(name);
    simdjson::dom::object within;
    if (value.get(within) == simdjson::SUCCESS) AddNames(within, name + ".", names);
  }
}

}  // namespace

Result<std::vector<std::string>> JsonColumnNames(std::string_view line) {
  simdjson::dom::parser parser;
  simdjson::dom::object fields;
  if (const error_code error = parser.parse(line.data(), line.size()).get(fields)) {
    return BadData(std::string("expected a JSON object, found what is none: ") + simdjson::error_message(error));
  }
  std::vector<std::string> names;
  AddNames(fields, "", &names);
  return names;
}

Result<std::unique_ptr<DataFeed>> JsonColumnFeed::Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                         const ColumnSetup& setup) {
  return std::unique_ptr<DataFeed>(std::make_unique<JsonLines>(schema, setup, desc));
}

}  // namespace millrace
