#include "datafeed/number_forms.h"

#include <algorithm>
#include <charconv>

#include "core/swar_digits.h"
#include "core/truth_value.h"
#include "core/utf8.h"
#include "data_feed.pb.h"
#include "datafeed/column_feed.h"
#include "features/feature_spec.h"

namespace millrace {
namespace {

bool IsDigits(std::string_view text) {
  uint64_t unused = 0;
  for (; text.size() > sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
    if (!NumberOfDigits(LoadWord(text.data()), sizeof(uint64_t), &unused)) return false;
  }
  return !text.empty() && NumberOfDigits(LoadWord(text.data()), static_cast<uint32_t>(text.size()), &unused);
}

}  // namespace

NumberForms::NumberForms(const std::vector<std::string>& columns, const DataFeedDesc& desc)
    : columns_(&columns), seen_(columns.size(), kOther), not_utf8_(columns.size()) {
  const std::vector<std::string> words = WordColumns(desc);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!std::binary_search(words.begin(), words.end(), columns[i])) continue;
    seen_[i] = kNone;
    watched_.push_back(i);
  }
  words_ = watched_;
  for (const FeatureStates::WholeNumber& number : desc.feature_states().whole_number()) {
    const auto column = std::find(columns.begin(), columns.end(), number.column());
    if (column != columns.end()) trained_[number.column()] = {.text = number.text(), .place = number.place()};
  }
}

NumberForms::Form NumberForms::FormOf(std::string_view text) {
  if (IsDigits(text)) [[likely]]
    return kWhole;
  if (MeansNothing(text)) return kNone;
  if (ReadTruthValue(text).has_value()) return kTruth;
  if (text.starts_with('-')) text.remove_prefix(1);
  // Large floats are written as 1.2e+16.
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  size_t exponent = 0;
  if (e < text.size()) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    if (digits.size() > 3 || !IsDigits(digits)) return kOther;
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  }
  const size_t point = std::min(text.find('.'), e);
  if (!IsDigits(text.substr(0, point))) return kOther;
  if (point == text.size()) return kWhole;
  if (point == e) return kWholeFloat;
  const std::string_view decimals = text.substr(point + 1, e - point - 1);
  if (!IsDigits(decimals)) return kOther;
  return decimals.find_last_not_of('0') + 1 <= exponent ? kWholeFloat : kOther;
}

void NumberForms::Look(size_t column, std::string_view text, size_t at) {
  const Form form = FormOf(text);
  if ((seen_[column] & form) == form) [[likely]]
    return;
  const bool is_found = std::any_of(found_.begin(), found_.end(),
                                    [&](const Found& found) { return found.column == column && found.form == form; });
  if (!is_found) found_.push_back({column, form, {.text = std::string(text), .column = at + 1}});
}

int64_t NumberForms::KeepLine() {
  if (found_.empty()) [[likely]]
    return 0;
  const auto count = static_cast<int64_t>(found_.size());
  for (Found& found : found_) {
    seen_[found.column] |= found.form;
    found.value.nth = kept_.size();
    kept_.push_back(std::move(found));
  }
  found_.clear();
  std::erase_if(watched_, [this](size_t column) { return !IsWatched(column); });
  return count;
}

int64_t NumberForms::TakeLine(std::span<const std::string_view> texts, std::span<const size_t> begins) {
  for (const size_t column : watched_) {
    if (!texts[column].empty()) Look(column, texts[column], begins[column]);
  }
  return KeepLine();
}

void NumberForms::LookForOtherBytes(std::span<const std::string_view> texts, std::span<const size_t> begins,
                                    std::span<const std::span<const std::string_view>> lists) {
  for (const size_t column : words_) {
    const auto look = [&](std::string_view text) {
      const size_t bad = IsAscii(text) ? text.size() : FindNoUtf8(text);
      if (bad == text.size()) return;
      ++not_utf8_[column];
      if ((seen_[column] & kNotUtf8) != 0) return;
      seen_[column] |= kNotUtf8;
      found_.push_back({column, kNotUtf8, {.text = std::string(text), .column = begins[column] + bad + 1}});
    };
    look(texts[column]);
    if (!lists.empty()) std::for_each(lists[column].begin(), lists[column].end(), look);
  }
}

void NumberForms::AddTo(ValueNames* names) const {
  for (const Found& kept : kept_) {
    const std::string& column = (*columns_)[kept.column];
    if (kept.form == kOther) names->others.insert(column);
    if (kept.form == kWhole) names->whole.emplace(column, kept.value);
    if (kept.form == kWholeFloat) names->whole_floats.emplace(column, kept.value);
    if (kept.form == kTruth) names->truths.emplace(column, kept.value);
    if (kept.form == kNotUtf8) names->not_utf8.emplace(column, kept.value);
  }
  for (size_t column = 0; column < not_utf8_.size(); ++column) {
    if (not_utf8_[column] > 0) names->not_utf8_values[(*columns_)[column]] += not_utf8_[column];
  }
  names->trained = trained_;
}

}  // namespace millrace
