#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace millrace {

/// What lines that name their values themselves (JSON) have named, and how they write whole numbers that are words
/// (WordColumns).
struct ValueNames {
  int64_t lines = 0;             ///< that were read; 0: nothing is known
  bool is_partial = false;       ///< lines were left unread, which may have what others lack
  std::set<std::string> some;    ///< names that lines have, those of the first one
  std::set<std::string> absent;  ///< columns that no line has named

  std::map<std::string, std::string> whole_floats;  ///< by column: the first that is written as 5.0
  std::set<std::string> whole;                      ///< columns that have some as 5
  std::set<std::string> fractions;                  ///< columns that have other numbers, too

  void Add(const ValueNames& other) {
    is_partial = is_partial || other.is_partial;
    if (other.lines == 0) return;
    if (lines == 0) absent = other.absent;
    std::erase_if(absent, [&](const std::string& column) { return !other.absent.contains(column); });
    lines += other.lines;
    some.insert(other.some.begin(), other.some.end());
    whole_floats.insert(other.whole_floats.begin(), other.whole_floats.end());
    whole.insert(other.whole.begin(), other.whole.end());
    fractions.insert(other.fractions.begin(), other.fractions.end());
  }
};

}  // namespace millrace
