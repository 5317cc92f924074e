#include "datafeed/number_forms.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/digits.h"
#include "core/numbers.h"
#include "core/utf8.h"
#include "data_feed.pb.h"
#include "datafeed/column_feed.h"
#include "features/feature_spec.h"
#include "features/time_text.h"

namespace millrace {
namespace {

bool IsDigits(std::string_view text) {
  uint64_t unused = 0;
  for (; text.size() > sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
    if (!NumberOfDigits(LoadWord(text.data()), sizeof(uint64_t), &unused)) return false;
  }
  return !text.empty() && NumberOfDigits(LoadWord(text.data()), static_cast<uint32_t>(text.size()), &unused);
}

constexpr size_t kShortestTime = sizeof("2026-11-26T10:00") - 1;

bool MayBeTime(std::string_view text) { return text.size() >= kShortestTime && text[4] == '-' && text[13] == ':'; }

/// A possible zone at the end of a time: "Z", "+09:00" or "+0900".
std::string_view ZoneEnd(std::string_view text) {
  if (text.back() == 'Z') return text.substr(text.size() - 1);
  for (const size_t size : {sizeof("+09:00") - 1, sizeof("+0900") - 1, sizeof("+09") - 1}) {
    const char sign = text[text.size() - size];
    if (sign == '+' || sign == '-') return text.substr(text.size() - size);
  }
  return {};
}

}  // namespace

NumberForms::NumberForms(const std::vector<std::string>& columns, const DataFeedDesc& desc, bool with_numbers)
    : columns_(&columns), seen_(columns.size(), kOther), not_utf8_(columns.size()) {
  const std::vector<std::string> words = WordColumns(desc);
  const std::map<std::string, DatePartStep::Format> clocks = ClockColumns(desc);
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto clock = clocks.find(columns[i]);
    const bool is_clock = clock != clocks.end();
    const bool is_word = std::binary_search(words.begin(), words.end(), columns[i]);
    if (is_clock || is_word) {
      times_.push_back({.column = i,
                        .is_clock = is_clock,
                        .are_milliseconds = is_clock && clock->second == DatePartStep::EPOCH_MILLISECONDS});
    }
    if (!is_word) continue;
    words_.push_back(i);
    if (!with_numbers) continue;
    seen_[i] = kNone;
    watched_.push_back(i);
  }
  for (const FeatureStates::ColumnTime& time : desc.feature_states().time()) {
    trained_zones_[time.column()][time.zone()] = {.text = time.zone(), .place = time.place()};
  }
  for (const FeatureStates::WholeNumber& number : desc.feature_states().whole_number()) {
    const auto column = std::find(columns.begin(), columns.end(), number.column());
    if (column != columns.end()) trained_[number.column()] = {.text = number.text(), .place = number.place()};
  }
}

NumberForms::Form NumberForms::FormOf(std::string_view text) {
  if (IsDigits(text)) [[likely]]
    return kWhole;
  if (IsMissingMarker(text)) return kNone;
  if (ReadTruthValue(text).has_value()) return kTruth;
  if (text.starts_with('-')) text.remove_prefix(1);
  // Large floats are written as 1.2e+16.
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  size_t exponent = 0;
  if (e < text.size()) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    if (digits.size() > 3 || !IsDigits(digits)) return kOther;
    (void)ReadWhole(digits, &exponent);
  }
  const size_t point = std::min(text.find('.'), e);
  if (!IsDigits(text.substr(0, point))) return kOther;
  if (point == text.size()) return kWhole;
  if (point == e) return kWholeFloat;
  const std::string_view decimals = text.substr(point + 1, e - point - 1);
  if (!IsDigits(decimals)) return kOther;
  return decimals.find_last_not_of('0') + 1 <= exponent ? kWholeFloat : kOther;
}

template <class Look>
void NumberForms::ForEachValue(const Line& line, size_t column, const Look& look) {
  if (line.lists.empty() || line.lists[column].empty()) [[likely]] {
    if (!line.texts[column].empty()) look(line.texts[column], line.begins[column]);
    return;
  }
  const std::less<> before;
  for (const std::string_view text : line.lists[column]) {
    const bool is_in_line =
        !before(text.data(), line.bytes.data()) && before(text.data(), line.bytes.data() + line.bytes.size());
    look(text, is_in_line ? static_cast<size_t>(text.data() - line.bytes.data()) : line.begins[column]);
  }
}

void NumberForms::LookAtNumber(size_t column, std::string_view text, size_t at) {
  const Form form = FormOf(text);
  if ((seen_[column] & form) == form) [[likely]]
    return;
  const bool is_found = std::any_of(found_.begin(), found_.end(),
                                    [&](const Found& found) { return found.column == column && found.form == form; });
  if (!is_found) found_.push_back({column, form, {.text = std::string(text), .column = at + 1}});
}

void NumberForms::LookAtTime(Times* times, std::string_view text, size_t at) {
  constexpr size_t kDate = sizeof("2026-11-26") - 1;
  constexpr int64_t kSecondsOf1970 = 365 * 86400;
  constexpr size_t kMostZones = 8;
  const auto add = [&](Form form, std::string zone) {
    found_.push_back({times->column, form, {.text = std::string(text), .column = at + 1}, std::move(zone)});
  };
  if (times->are_milliseconds) {
    int64_t seconds = 0;
    if (times->has_later || !ReadTime(text, {.format = DatePartStep::EPOCH_MILLISECONDS}, &seconds)) return;
    times->has_later = seconds < 0 || seconds >= kSecondsOf1970;
    if (!times->has_later && times->zones.empty()) {
      times->zones.emplace_back();
      add(kOf1970, "");
    }
    return;
  }
  // If the local time is used, a date is a time without zone.
  const bool is_date = times->is_clock && text.size() == kDate;
  if (is_date ? text[4] != '-' : !MayBeTime(text)) return;
  const std::string_view end = is_date ? std::string_view() : ZoneEnd(text);
  if (times->has_last && end == times->last_end) [[likely]]
    return;
  IsoTime time;
  if (times->zones.size() >= kMostZones || !ReadIsoTime(text, &time) || time.has_clock == is_date) return;
  times->has_last = true;
  times->last_end = end;
  std::string zone = ZoneText(time.offset_minutes);
  if (std::find(times->zones.begin(), times->zones.end(), zone) != times->zones.end()) return;
  times->zones.push_back(zone);
  add(kZone, std::move(zone));
}

int64_t NumberForms::TakeLine(const Line& line) {
  for (const size_t column : watched_) {
    ForEachValue(line, column, [&](std::string_view text, size_t at) { LookAtNumber(column, text, at); });
  }
  for (Times& times : times_) {
    ForEachValue(line, times.column, [&](std::string_view text, size_t at) {
      if (times.is_clock || MayBeTime(text)) LookAtTime(&times, text, at);
    });
  }
  if (found_.empty()) [[likely]]
    return 0;
  const auto count = static_cast<int64_t>(found_.size());
  for (Found& found : found_) {
    if (found.form < kZone) seen_[found.column] |= found.form;
    found.value.nth = kept_.size();
    kept_.push_back(std::move(found));
  }
  found_.clear();
  std::erase_if(watched_, [this](size_t column) { return (seen_[column] & kOther) != 0; });
  return count;
}

void NumberForms::LookForOtherBytes(const Line& line) {
  for (const size_t column : words_) {
    ForEachValue(line, column, [&](std::string_view text, size_t at) {
      const size_t bad = IsAscii(text) ? text.size() : FindNoUtf8(text);
      if (bad == text.size()) return;
      ++not_utf8_[column];
      if ((seen_[column] & kNotUtf8) != 0) return;
      seen_[column] |= kNotUtf8;
      found_.push_back({column, kNotUtf8, {.text = std::string(text), .column = at + bad + 1}});
    });
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
    if (kept.form == kZone) names->zones[column].emplace(kept.zone, kept.value);
    if (kept.form == kOf1970) names->of_1970.emplace(column, kept.value);
  }
  for (size_t column = 0; column < not_utf8_.size(); ++column) {
    if (not_utf8_[column] > 0) names->not_utf8_values[(*columns_)[column]] += not_utf8_[column];
  }
  for (const Times& times : times_) {
    if (times.is_clock) names->clocks.insert((*columns_)[times.column]);
    if (times.has_later) names->later.insert((*columns_)[times.column]);
  }
  names->trained = trained_;
  names->trained_zones = trained_zones_;
}

}  // namespace millrace
