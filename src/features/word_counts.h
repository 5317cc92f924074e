#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "features/text_hash.h"

namespace millrace {

/// Counts how often each text stands somewhere. Holds every different text. One thread.
class WordCounts {
 public:
  void Add(std::string_view word, int64_t count = 1) {
    const auto found = counts_.find(word);
    if (found != counts_.end()) {
      found->second += count;
    } else {
      counts_.emplace(word, count);
    }
  }
  void Add(const WordCounts& other) {
    for (const auto& [word, count] : other.counts_) Add(word, count);
  }
  /// The most frequent first; of those that are as frequent, the one whose bytes are less. Valid until the next Add.
  std::vector<std::pair<std::string_view, int64_t>> Sorted() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return TextHash(word); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace millrace
