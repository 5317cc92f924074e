#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

/// The words of a vocabulary, found by their bytes. Constant; any thread.
class WordList {
 public:
  static constexpr int64_t kNone = -1;

  WordList() = default;
  /// `words` are not empty and differ: kInvalidConfig otherwise.
  static Result<WordList> Create(const std::vector<std::string_view>& words);

  int64_t size() const { return static_cast<int64_t>(hashes_.size()); }
  /// Its place, or kNone. `hash` is TextHash(word).
  int64_t Find(std::string_view word, uint64_t hash) const {
    if (places_.empty()) return kNone;
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const uint32_t place = places_[at];
      if (place == kEmpty) return kNone;
      if (hashes_[place] == hash && Word(place) == word) return place;
    }
  }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;

  std::string_view Word(size_t place) const {
    return std::string_view(text_).substr(begins_[place], begins_[place + 1] - begins_[place]);
  }

  std::string text_;              ///< the words, end to end
  std::vector<size_t> begins_;    ///< of each, and their end
  std::vector<uint64_t> hashes_;  ///< of each
  std::vector<uint32_t> places_;  ///< by hash, at most half of them full
  size_t mask_ = 0;
};

}  // namespace millrace
