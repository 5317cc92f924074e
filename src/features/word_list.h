#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

/// The words of a vocabulary, looked up by bytes. Immutable; any thread.
class WordList {
 public:
  static constexpr int64_t kNone = -1;

  WordList() = default;
  /// Fails with kInvalidConfig if a word is empty or duplicated or there are too many.
  static Result<WordList> Create(const std::vector<std::string_view>& words);

  int64_t size() const { return static_cast<int64_t>(hashes_.size()); }
  /// The word's index, or kNone. `hash` is TextHash(word).
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

  std::string text_;              ///< the concatenated words
  std::vector<size_t> begins_;    ///< offset of each word, and the end
  std::vector<uint64_t> hashes_;  ///< hash of each word
  std::vector<uint32_t> places_;  ///< by hash, at most half full
  size_t mask_ = 0;
};

}  // namespace millrace
