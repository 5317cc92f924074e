#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace millrace {

/// A whole number or a truth value as lines write it.
struct NumberForm {
  std::string text = {};   ///< "5", "5.0" or "True"
  std::string place = {};  ///< of the first such one: "part-0:17:5"; its feed does not know it
  uint32_t file = 0;       ///< likewise
  uint64_t line = 0;       ///< likewise
  size_t column = 0;       ///< byte of the line, from 1
  size_t nth = 0;          ///< among those of a feed, in the order in which its lines had them

  bool IsBefore(const NumberForm& other) const { return file != other.file ? file < other.file : line < other.line; }
};

/// The times by which rows are parted (DataFeedDesc.rows), as lines write them.
struct SeenTimes {
  struct Time {
    int64_t seconds = 0;  ///< since 1970
    std::string text;
  };
  std::string column;  ///< empty: there were none
  Time first;
  Time last;

  void Add(const SeenTimes& other) {
    if (other.column.empty()) return;
    if (column.empty()) *this = other;
    if (other.first.seconds < first.seconds) first = other.first;
    if (other.last.seconds > last.seconds) last = other.last;
  }
};

/// What rows have of the words of a vocabulary that the job says.
struct SeenWords {
  bool has_some = false;
  std::string other;  ///< a text that is no word; empty: there was none

  void Add(const SeenWords& more) {
    has_some = has_some || more.has_some;
    if (other.empty()) other = more.other;
  }
};

/// What the values of a slot were, of rows that stand for all of some pass.
struct SlotShare {
  int64_t rows = 0;
  int64_t empty = 0;    ///< of these rows: without a value
  int64_t ids = 0;      ///< of which is known whether they were trained
  int64_t unknown = 0;  ///< of these: never trained, or no words of the slot's vocabulary
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

/// What the lines say in addition to their values: of JSON the keys, how whole numbers and truth values that are
/// words (WordColumns) are written, which zones times have, and from when to when rows are.
struct ValueNames {
  int64_t lines = 0;             ///< that were read; 0: nothing is known but of `times`, `words` and `all_ones`
  bool is_partial = false;       ///< lines were left unread, which may have what others lack
  std::set<std::string> some;    ///< names that lines have, those of the first one
  std::set<std::string> absent;  ///< columns that no line has named

  SeenTimes times;
  std::map<std::string, SeenWords> words;  ///< by feature
  /// By feature that makes words of the values of several indices of libsvm: whether all of them are 1.
  std::map<std::string, bool> all_ones;

  std::map<std::string, NumberForm> whole_floats;  ///< by column: the first that is written as 5.0
  std::map<std::string, NumberForm> whole;         ///< by column: the first that is written as 5
  std::map<std::string, NumberForm> truths;        ///< by column: the first that is written as True or false
  std::map<std::string, NumberForm> not_utf8;      ///< by column of words: the first whose bytes are no UTF-8
  std::map<std::string, int64_t> not_utf8_values;  ///< by column: how many there are
  std::set<std::string> others;                    ///< columns that have other numbers or texts, too
  /// By column: how the files of the training begin; without a text: it is one of words.
  std::map<std::string, NumberForm> trained;

  SlotShares shares;          ///< of what a model scored
  SlotShares trained_shares;  ///< of the evaluation before, as far as there was one

  /// By column, and by zone, "UTC", "+09:00" or "" for none: the first time of it.
  std::map<std::string, std::map<std::string, NumberForm>> zones;
  /// By column, and by zone: those that trained, with the place of the first time of each.
  std::map<std::string, std::map<std::string, NumberForm>> trained_zones;
  std::set<std::string> clocks;               ///< columns of which date_part takes what the clock shows
  std::map<std::string, NumberForm> of_1970;  ///< by column of milliseconds: the first time in 1970
  std::set<std::string> later;                ///< columns of milliseconds that have times of other years

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
