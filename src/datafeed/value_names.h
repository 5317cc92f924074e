#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace millrace {

/// An integer or a boolean as written in lines.
struct NumberForm {
  std::string text = {};   ///< "5", "5.0" or "True"
  std::string place = {};  ///< of the first one: "part-0:17:5"; unknown to the feed
  uint32_t file = 0;       ///< of the first one; unknown to the feed
  uint64_t line = 0;       ///< of the first one; unknown to the feed
  size_t column = 0;       ///< byte of the line, from 1
  size_t nth = 0;          ///< index among those of a feed, in line order

  bool IsBefore(const NumberForm& other) const { return file != other.file ? file < other.file : line < other.line; }
};

/// The range of times that select rows (DataFeedDesc.rows), as written in lines.
struct SeenTimes {
  struct Time {
    int64_t seconds = 0;  ///< since 1970
    std::string text;
  };
  std::string column;  ///< empty: none
  Time first;
  Time last;

  void Add(const SeenTimes& other) {
    if (other.column.empty()) return;
    if (column.empty()) *this = other;
    if (other.first.seconds < first.seconds) first = other.first;
    if (other.last.seconds > last.seconds) last = other.last;
  }
};

/// Which rows contain words of a vocabulary given in the job.
struct SeenWords {
  bool has_some = false;
  std::string other;  ///< a string that is not a word; empty: none

  void Add(const SeenWords& more) {
    has_some = has_some || more.has_some;
    if (other.empty()) other = more.other;
  }
};

/// Statistics of a slot's values, over a sample of rows.
struct SlotShare {
  int64_t rows = 0;
  int64_t empty = 0;    ///< rows without a value
  int64_t ids = 0;      ///< ids checked against the trained ones
  int64_t unknown = 0;  ///< of these, never trained, or not in the slot's vocabulary
  bool has_vocabulary = false;

  SlotShare& operator+=(const SlotShare& other) {
    rows += other.rows;
    empty += other.empty;
    ids += other.ids;
    unknown += other.unknown;
    has_vocabulary = has_vocabulary || other.has_vocabulary;
    return *this;
  }
  friend bool operator==(const SlotShare&, const SlotShare&) = default;
};
using SlotShares = std::map<std::string, SlotShare>;  ///< by slot

/// Facts about lines beyond their values: JSON keys, how columns of words (WordColumns) write integers and booleans,
/// time zones, and the range of times.
struct ValueNames {
  int64_t lines = 0;             ///< lines read; 0: only `times`, `words` and `all_ones` are known
  bool is_partial = false;       ///< some lines were not read and may have other names
  std::set<std::string> some;    ///< the first names found in lines
  std::set<std::string> absent;  ///< columns that no line named

  SeenTimes times;
  std::map<std::string, SeenWords> words;  ///< by feature
  /// By feature that hashes values of several libsvm indices: whether all values are 1.
  std::map<std::string, bool> all_ones;

  std::map<std::string, NumberForm> whole_floats;  ///< by column: the first value written like 5.0
  std::map<std::string, NumberForm> whole;         ///< by column: the first value written like 5
  std::map<std::string, NumberForm> truths;        ///< by column: the first value written like True or false
  std::map<std::string, NumberForm> not_utf8;      ///< by column of words: the first value that is not UTF-8
  std::map<std::string, int64_t> not_utf8_values;  ///< by column: number of such values
  std::set<std::string> others;                    ///< columns that also have other numbers or strings
  /// By column: how the first training file writes values; empty text: a column of words.
  std::map<std::string, NumberForm> trained;

  SlotShares shares;          ///< of the rows scored by a model
  SlotShares trained_shares;  ///< of the previous evaluation, if any

  /// By column and zone ("UTC", "+09:00" or "" for none): the first such time.
  std::map<std::string, std::map<std::string, NumberForm>> zones;
  /// By column and zone: the zones in training, with the position of the first time of each.
  std::map<std::string, std::map<std::string, NumberForm>> trained_zones;
  std::set<std::string> clocks;               ///< columns of which date_part uses the local time
  std::map<std::string, NumberForm> of_1970;  ///< by column of milliseconds: the first time in 1970
  std::set<std::string> later;                ///< columns of milliseconds with times in other years

  std::array<std::map<std::string, NumberForm>*, 4> forms() { return {&whole, &whole_floats, &truths, &not_utf8}; }
  std::array<const std::map<std::string, NumberForm>*, 4> forms() const {
    return {&whole, &whole_floats, &truths, &not_utf8};
  }

  void Add(const ValueNames& other) {
    is_partial = is_partial || other.is_partial;
    times.Add(other.times);
    for (const auto& [feature, seen] : other.words) words[feature].Add(seen);
    for (const auto& [feature, all] : other.all_ones) {
      bool& ones = all_ones.emplace(feature, true).first->second;
      ones = ones && all;
    }
    for (const auto& [slot, share] : other.shares) shares[slot] += share;
    trained_shares.insert(other.trained_shares.begin(), other.trained_shares.end());
    if (other.lines == 0) return;
    if (lines == 0) absent = other.absent;
    std::erase_if(absent, [&](const std::string& column) { return !other.absent.contains(column); });
    lines += other.lines;
    some.insert(other.some.begin(), other.some.end());
    for (size_t form = 0; form < forms().size(); ++form) AddFirst(*other.forms()[form], forms()[form]);
    for (const auto& [column, values] : other.not_utf8_values) not_utf8_values[column] += values;
    others.insert(other.others.begin(), other.others.end());
    trained.insert(other.trained.begin(), other.trained.end());
    for (const auto& [column, times_of] : other.zones) AddFirst(times_of, &zones[column]);
    trained_zones.insert(other.trained_zones.begin(), other.trained_zones.end());
    clocks.insert(other.clocks.begin(), other.clocks.end());
    AddFirst(other.of_1970, &of_1970);
    later.insert(other.later.begin(), other.later.end());
  }

 private:
  static void AddFirst(const std::map<std::string, NumberForm>& more, std::map<std::string, NumberForm>* all) {
    for (const auto& [column, number] : more) {
      const auto known = all->emplace(column, number).first;
      if (number.IsBefore(known->second)) known->second = number;
    }
  }
};

}  // namespace millrace
