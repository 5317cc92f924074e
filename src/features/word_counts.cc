#include "features/word_counts.h"

#include <algorithm>

namespace millrace {

std::vector<std::pair<std::string_view, int64_t>> WordCounts::Sorted() const {
  std::vector<std::pair<std::string_view, int64_t>> words(counts_.begin(), counts_.end());
  std::sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return words;
}

}  // namespace millrace
