#include "features/feature_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/numbers.h"
#include "core/utf8.h"
#include "features/text_hash.h"
#include "features/value_text.h"

namespace millrace {
namespace {

using Kind = FeaturePlan::Kind;

/// More combinations of a cross mean a faulty job or damaged data.
constexpr size_t kMostCombinations = size_t{1} << 16;

/// More n-grams in a value, or more bytes in them, mean damaged data: each costs memory, and a compressed file of a few
/// kilobytes can contain a line of megabytes.
constexpr size_t kMostNgrams = size_t{1} << 18;
constexpr size_t kMostNgramBytes = size_t{1} << 26;

/// Number of n-grams of `least` to `most` of `parts` parts; `most` is at most 16.
size_t CountOfNgrams(size_t parts, size_t least, size_t most) {
  size_t count = 0;
  for (size_t n = least; n <= std::min(most, parts); ++n) count += parts - n + 1;
  return count;
}

std::string_view StrippedOfBytes(std::string_view text, std::string_view characters) {
  const size_t begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return text.substr(0, 0);
  return text.substr(begin, text.find_last_not_of(characters) + 1 - begin);
}

/// The last character of a non-empty string; an invalid byte is a character.
std::string_view LastCharacter(std::string_view text) {
  constexpr size_t kLongest = 4;
  for (size_t size = 1; size <= std::min(text.size(), kLongest); ++size) {
    if (Utf8Length(text, text.size() - size) == size) return text.substr(text.size() - size);
  }
  return text.substr(text.size() - 1);
}

/// Like above, by UTF-8 characters instead of bytes, which several characters share.
std::string_view StrippedOfCharacters(std::string_view text, std::string_view characters) {
  const auto is_stripped = [&](std::string_view character) {
    return Utf8Length(character, 0) == character.size() && characters.find(character) != std::string_view::npos;
  };
  while (!text.empty()) {
    const std::string_view first = text.substr(0, std::max<size_t>(Utf8Length(text, 0), 1));
    if (!is_stripped(first)) break;
    text.remove_prefix(first.size());
  }
  while (!text.empty() && is_stripped(LastCharacter(text))) text.remove_suffix(LastCharacter(text).size());
  return text;
}

std::string_view Stripped(const FeaturePlan::Feature& feature, std::string_view text) {
  return feature.strips_characters ? StrippedOfCharacters(text, feature.strip) : StrippedOfBytes(text, feature.strip);
}

/// False for a finite number beyond the range of float: a single one, such as a marker for missing values, would
/// dominate a mean.
bool FitsFloat(double number) {
  return !std::isfinite(number) || std::abs(number) <= std::numeric_limits<float>::max();
}

}  // namespace

FeatureRow::FeatureRow(std::shared_ptr<const FeaturePlan> plan, ValueListener* listener)
    : plan_(std::move(plan)),
      listener_(listener),
      values_(plan_ == nullptr ? 0 : plan_->features().size()),
      plain_(values_.size()),
      seen_(values_.size()),
      made_(values_.size()) {}

bool FeatureRow::Make(std::span<const std::string_view> columns, std::span<const List> lists) {
  lists_ = lists;
  const std::vector<Feature>& features = plan_->features();
  for (size_t i = 0; i < features.size(); ++i) {
    const Feature& feature = features[i];
    // The usual case: the hash of one string.
    if (feature.is_plain_hash && lists.empty()) [[likely]] {
      if (const std::string_view text = columns[static_cast<size_t>(feature.columns[0])]; !text.empty()) [[likely]] {
        plain_[i] = TextHash(feature.takes_canonical ? CanonicalText(text, &canonical_) : text, feature.seed);
        made_[i] = {&plain_[i], 1};
        continue;
      }
    }
    Values& values = values_[i];
    values.ids.clear();
    values.floats.clear();
    if (MakeFeature(feature, columns, values)) [[likely]] {
      made_[i] = values.ids;
      continue;
    }
    error_.feature = static_cast<int>(i);
    return false;
  }
  return true;
}

bool FeatureRow::TakesDefault(const Feature& feature, std::string* expected) {
  Values values;
  if (MakeColumn(feature, 0, std::string_view(""), values)) return true;
  *expected = error_.expected;
  return false;
}

bool FeatureRow::Fail(FeatureError::Kind kind, std::string_view text, std::string expected) {
  error_.kind = kind;
  error_.text = text;
  error_.expected = std::move(expected);
  return false;
}

bool FeatureRow::FailTime(const Feature& feature, std::string_view text) {
  return Fail(FeatureError::Kind::kBadValue, text, ExpectedTimeFor(text, feature.time_part->format));
}

bool FeatureRow::MakeFeature(const Feature& feature, std::span<const std::string_view> columns, Values& values) {
  if (feature.kind == Kind::kCross) return MakeCross(feature, columns, values);
  for (size_t i = 0; i < feature.columns.size(); ++i) {
    if (TakeColumn(feature, i, columns, values)) [[likely]]
      continue;
    error_.column = feature.columns[i];
    return false;
  }
  return true;
}

bool FeatureRow::TakeColumn(const Feature& feature, size_t i, std::span<const std::string_view> columns,
                            Values& values) {
  const auto column = static_cast<size_t>(feature.columns[i]);
  ngrams_ = 0;
  if (lists_.empty() || lists_[column].empty()) [[likely]]
    return MakeColumn(feature, i, columns[column], values);
  const List list = lists_[column];
  if (feature.is_dense && list.size() != 1) {
    return Fail(FeatureError::Kind::kTooMany, list[1], "one value, as its slot is dense");
  }
  if (feature.ngrams.has_value() && feature.split.empty()) {
    if (list.size() > kMostNgrams) return TakeNgrams(list.size());
    parts_.clear();
    for (const std::string_view text : list) parts_.push_back(PartOf(feature, text, parts_.size()));
    return MakeNgrams(feature, i, values);
  }
  return std::all_of(list.begin(), list.end(), [&](std::string_view text) {
    // An empty value in a list is a string without a value and has no default.
    return text.empty() || MakeColumn(feature, i, text, values);
  });
}

bool FeatureRow::MakeColumn(const Feature& feature, size_t i, std::string_view text, Values& values) {
  if (!feature.strip.empty() && feature.split.empty()) text = Stripped(feature, text);
  if (text.empty()) [[unlikely]] {
    if (!feature.defaults.empty()) return MakeNumber(feature, i, text, values);
    // Statistics exclude defaults of missing numbers.
    const bool is_left_out = feature.kind == Kind::kStatistics && feature.tells_numbers && listener_ != nullptr;
    if (feature.has_default && !is_left_out) text = feature.default_text();
  }
  if (feature.takes_canonical) text = CanonicalText(text, &canonical_);
  if (!feature.split.empty()) return MakeParts(feature, i, text, values);
  if (!text.empty()) [[likely]] {
    if (!feature.ngrams.has_value()) [[likely]]
      return MakeValue(feature, i, text, values);
    parts_.assign(1, text);
    return MakeNgrams(feature, i, values);
  }
  if (!feature.is_dense || feature.kind == Kind::kStatistics) return true;
  const bool is_number = feature.kind == Kind::kNumbers || feature.kind == Kind::kBuckets;
  return Fail(FeatureError::Kind::kMissing, text,
              is_number ? "a value (default_from: MEDIAN, or default: \"...\", stands for missing ones)"
                        : "a value (default: \"...\" stands for missing ones)");
}

bool FeatureRow::MakeParts(const Feature& feature, size_t i, std::string_view text, Values& values) {
  parts_.clear();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(feature.split, begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    begin = end + feature.split.size();
    if (!feature.strip.empty()) part = Stripped(feature, part);
    if (part.empty()) continue;
    part = PartOf(feature, part, parts_.size());
    if (feature.ngrams.has_value()) {
      if (parts_.size() > kMostNgrams) return TakeNgrams(parts_.size());
      parts_.push_back(part);
    } else if (!MakeValue(feature, i, part, values)) {
      return false;
    }
  }
  return !feature.ngrams.has_value() || MakeNgrams(feature, i, values);
}

std::string_view FeatureRow::PartOf(const Feature& feature, std::string_view text, size_t k) {
  if (!feature.takes_canonical) return text;
  if (canonical_parts_.size() <= k) canonical_parts_.resize(k + 1);
  return CanonicalText(text, &canonical_parts_[k]);
}

bool FeatureRow::MakeNgrams(const Feature& feature, size_t i, Values& values) {
  if (feature.ngrams->of_characters) {
    return std::all_of(parts_.begin(), parts_.end(),
                       [&](std::string_view part) { return MakeNgramsOfCharacters(feature, i, part, values); });
  }
  const auto least = static_cast<size_t>(feature.ngrams->least);
  const auto most = std::min(static_cast<size_t>(feature.ngrams->most), parts_.size());
  if (!TakeNgrams(CountOfNgrams(parts_.size(), least, most))) return false;
  size_t bytes = 0;
  for (size_t n = least; n <= most; ++n) {
    for (size_t begin = 0; begin + n <= parts_.size(); ++begin) {
      joined_.assign(parts_[begin]);
      for (size_t k = 1; k < n; ++k) (joined_ += ' ') += parts_[begin + k];
      bytes += joined_.size();
      if (bytes > kMostNgramBytes) {
        return Fail(FeatureError::Kind::kTooMany, {},
                    "n-grams of at most " + std::to_string(kMostNgramBytes) + " bytes together in a value");
      }
      if (!MakeValue(feature, i, joined_, values)) return false;
    }
  }
  return true;
}

bool FeatureRow::TakeNgrams(size_t count) {
  ngrams_ += count;
  return ngrams_ <= kMostNgrams ||
         Fail(FeatureError::Kind::kTooMany, {}, "at most " + std::to_string(kMostNgrams) + " n-grams of a value");
}

bool FeatureRow::MakeNgramsOfCharacters(const Feature& feature, size_t i, std::string_view part, Values& values) {
  characters_.clear();
  for (size_t at = 0; at < part.size(); at += std::max<size_t>(Utf8Length(part, at), 1)) {
    if (characters_.size() > 2 * kMostNgrams) return TakeNgrams(characters_.size());
    characters_.push_back(at);
  }
  const size_t count = characters_.size();
  characters_.push_back(part.size());
  const auto most = std::min(static_cast<size_t>(feature.ngrams->most), count);
  if (!TakeNgrams(CountOfNgrams(count, static_cast<size_t>(feature.ngrams->least), most))) return false;
  for (auto n = static_cast<size_t>(feature.ngrams->least); n <= most; ++n) {
    for (size_t begin = 0; begin + n <= count; ++begin) {
      const size_t from = characters_[begin];
      if (!MakeValue(feature, i, part.substr(from, characters_[begin + n] - from), values)) return false;
    }
  }
  return true;
}

bool FeatureRow::MakeValue(const Feature& feature, size_t i, std::string_view text, Values& values) {
  switch (feature.kind) {
    case Kind::kNumbers:
    case Kind::kBuckets: return MakeNumber(feature, i, text, values);
    case Kind::kId: return MakeId(feature, text, values);
    case Kind::kWord: return MakeWord(feature, text, values);
    case Kind::kStatistics: return Tell(feature, i, text);
    case Kind::kText:
    case Kind::kCross: break;
  }
  // The parts of a cross are 64-bit hashes with the cross's seed.
  const uint64_t hash = TextHash(text, feature.seed);
  values.ids.push_back(feature.buckets == 0 || feature.kind == Kind::kCross ? hash : hash % feature.buckets);
  return true;
}

bool FeatureRow::ReadNumberOf(const Feature& feature, std::string_view text, double* read) {
  double number = 0;
  if (feature.time_part.has_value()) [[unlikely]] {
    int64_t part = 0;
    if (!ReadTimePart(text, *feature.time_part, &part)) return FailTime(feature, text);
    number = static_cast<double>(part);
  } else if (!ReadNumber(text, &number)) {
    const std::optional<bool> truth = ReadTruthValue(text);
    if (!truth.has_value()) return Fail(FeatureError::Kind::kBadValue, text, "a number");
    number = *truth ? 1 : 0;
  }
  *read = number < feature.least ? feature.least : number > feature.most ? feature.most : number;
  if (!feature.learns_default || FitsFloat(*read)) return true;
  return Fail(FeatureError::Kind::kBadValue, text,
              "a number of at most 3.4e38, as default_from learns from it (clip keeps it in a range)");
}

bool FeatureRow::ScaleNumber(const Feature& feature, size_t i, std::string_view text, double* scaled) {
  double number = *scaled;
  if (feature.takes_log1p) {
    if (number <= -1) {
      return Fail(FeatureError::Kind::kBadValue, text,
                  "a number above -1, of which log1p can be taken (clip keeps it in a range)");
    }
    number = std::log1p(number);
  }
  if (feature.learns_mean && !FitsFloat(number)) {
    return Fail(FeatureError::Kind::kBadValue, text,
                "a number of at most 3.4e38, as a mean of them is learned (clip keeps it in a range)");
  }
  if (!feature.scales.empty()) number = (number - feature.scales[i].mean) / feature.scales[i].deviation;
  *scaled = number;
  return true;
}

bool FeatureRow::MakeNumber(const Feature& feature, size_t i, std::string_view text, Values& values) {
  double number = 0;
  if (text.empty()) [[unlikely]] {
    number = feature.defaults[i];
  } else if (!ReadNumberOf(feature, text, &number)) {
    return false;
  }
  if (feature.is_scaled && !ScaleNumber(feature, i, text, &number)) return false;
  if (feature.kind == Kind::kNumbers) {
    values.floats.push_back(static_cast<float>(number));
    return true;
  }
  if (std::isnan(number)) return Fail(FeatureError::Kind::kBadValue, text, "a number that lies in a bucket");
  const auto& boundaries = feature.boundaries;
  const auto bucket = std::upper_bound(boundaries.begin(), boundaries.end(), number) - boundaries.begin();
  PutId(feature, static_cast<uint64_t>(bucket), values);
  return true;
}

bool FeatureRow::Tell(const Feature& feature, size_t i, std::string_view text) {
  const auto place = static_cast<int>(&feature - plan_->features().data());
  double number = 0;
  double scaled = 0;
  if (feature.tells_numbers) {
    if (!ReadNumberOf(feature, text, &number)) return false;
    scaled = number;
    if (feature.is_scaled && !ScaleNumber(feature, i, text, &scaled)) return false;
  }
  if (listener_ == nullptr) return true;  // only checks a default
  if (feature.tells_numbers) {
    listener_->OnNumber(place, i, number, scaled);
  } else {
    listener_->OnText(place, text);
  }
  return true;
}

bool FeatureRow::MakeId(const Feature& feature, std::string_view text, Values& values) {
  if (feature.time_part.has_value()) {
    int64_t part = 0;
    if (!ReadTimePart(text, *feature.time_part, &part)) return FailTime(feature, text);
    if (part < 0) return Fail(FeatureError::Kind::kNegative, text, "a time whose part is no number below 0, and an id");
    PutId(feature, static_cast<uint64_t>(part), values);
    return true;
  }
  uint64_t id = 0;
  IntegerText read = ParseInteger(text, &id);
  if (read == IntegerText::kNoNumber) [[unlikely]]
    read = ParseInteger(WholeNumberText(text), &id);
  switch (read) {
    case IntegerText::kOk: PutId(feature, id, values); return true;
    case IntegerText::kNegative:
      return Fail(FeatureError::Kind::kNegative, text,
                  feature.is_dense && WholeNumberText(text) == "-1"
                      ? "an id without a minus (labels -1 and 1 are words: vocabulary { words: [\"-1\", \"1\"] "
                        "oov_buckets: 0 })"
                      : "an id without a minus");
    case IntegerText::kOverflow:
      return Fail(FeatureError::Kind::kOverflow, text, "an id of at most 18446744073709551615");
    case IntegerText::kNoNumber: break;
  }
  if (const std::optional<bool> truth = ReadTruthValue(text); truth.has_value()) {
    PutId(feature, *truth ? 1 : 0, values);
    return true;
  }
  return Fail(FeatureError::Kind::kBadValue, text, "an unsigned integer");
}

bool FeatureRow::MakeWord(const Feature& feature, std::string_view text, Values& values) {
  const uint64_t hash = TextHash(text);
  int64_t place = feature.words.Find(text, hash);
  if (place == WordList::kNone && feature.oov_buckets == 0) {
    // Labels are written as 1, +1 and 1.0, and other words are an error here.
    const std::string_view whole = WholeNumberText(text);
    const uint64_t hash_of_whole = TextHash(whole);
    place = feature.words.Find(whole, hash_of_whole);
    if (place == WordList::kNone) place = feature.whole_words.Find(whole, hash_of_whole);
  }
  Seen& seen = seen_[static_cast<size_t>(&feature - plan_->features().data())];
  if (place != WordList::kNone) {
    seen.has_some = true;
    PutId(feature, feature.oov_buckets + static_cast<uint64_t>(place), values);
    return true;
  }
  if (feature.oov_buckets == 0) {
    return Fail(FeatureError::Kind::kBadValue, text,
                "one of the " + std::to_string(feature.words.size()) + " words of the vocabulary (oov_buckets: 0)");
  }
  if (seen.other.empty()) seen.other = text;
  PutId(feature, hash % feature.oov_buckets, values);
  return true;
}

void FeatureRow::PutId(const Feature& feature, uint64_t id, Values& values) {
  if (feature.hashes_ids) {
    id = HashOfId(id, feature.seed);
    if (feature.buckets != 0) id %= feature.buckets;
  }
  values.ids.push_back(id);
}

bool FeatureRow::MakeCross(const Feature& feature, std::span<const std::string_view> columns, Values& values) {
  const size_t count = feature.columns.size() + feature.of.size();
  if (crossed_.size() < count) crossed_.resize(count);
  std::span<const uint64_t> lists[kMostCrossed];
  size_t combinations = 1;
  for (size_t i = 0; i < count; ++i) {
    if (i < feature.columns.size()) {
      crossed_[i].ids.clear();
      if (!TakeColumn(feature, i, columns, crossed_[i])) {
        error_.column = feature.columns[i];
        return false;
      }
      lists[i] = crossed_[i].ids;
    } else {
      lists[i] = ids(feature.of[i - feature.columns.size()]);
    }
    combinations *= lists[i].size();
    if (combinations > kMostCombinations) {
      error_.column = feature.columns.empty() ? 0 : feature.columns[0];
      return Fail(FeatureError::Kind::kTooMany, {},
                  "at most " + std::to_string(kMostCombinations) + " combinations of values");
    }
  }
  // The last part varies fastest, as in nested loops.
  for (size_t n = 0; n < combinations; ++n) {
    uint64_t chosen[kMostCrossed];
    for (size_t i = count, rest = n; i-- > 0; rest /= lists[i].size()) chosen[i] = lists[i][rest % lists[i].size()];
    const uint64_t hash = TextHash({reinterpret_cast<const char*>(chosen), count * sizeof(uint64_t)}, feature.seed);
    values.ids.push_back(feature.buckets == 0 ? hash : hash % feature.buckets);
  }
  return true;
}

Status CheckDefaults(const FeaturePlan& plan) {
  std::string problems;
  // The plan outlives the row, so no ownership is needed.
  FeatureRow row({std::shared_ptr<const FeaturePlan>(), &plan});
  for (const FeaturePlan::Feature& feature : plan.features()) {
    std::string expected;
    if (!feature.has_default || row.TakesDefault(feature, &expected)) continue;
    problems += (problems.empty() ? "" : "\n") + ("data_desc.feature \"" + feature.name) + "\": default: expected " +
                expected + ", found \"" + std::string(feature.default_text()) + "\"";
  }
  return problems.empty() ? Status::Ok() : InvalidConfig(problems);
}

}  // namespace millrace
