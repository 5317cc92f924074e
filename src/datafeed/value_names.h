#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace millrace {

/// What lines that name their values themselves (JSON) have named.
struct ValueNames {
  int64_t lines = 0;             ///< that were read; 0: nothing is known
  std::set<std::string> some;    ///< names that lines have, those of the first one
  std::set<std::string> absent;  ///< columns that no line has named

  void Add(const ValueNames& other) {
    if (other.lines == 0) return;
    if (lines == 0) {
      *this = other;
      return;
    }
    lines += other.lines;
    some.insert(other.some.begin(), other.some.end());
    std::erase_if(absent, [&](const std::string& column) { return !other.absent.contains(column); });
  }
};

}  // namespace millrace
