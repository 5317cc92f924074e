#include "features/word_list.h"

#include <bit>

#include "core/shortened.h"
#include "features/text_hash.h"

namespace millrace {

Result<WordList> WordList::Create(const std::vector<std::string_view>& words) {
  constexpr size_t kMost = size_t{1} << 30;
  if (words.size() > kMost) return InvalidConfig("a vocabulary has at most 2^30 words");
  WordList list;
  list.places_.assign(std::bit_ceil(2 * words.size() + 1), kEmpty);
  list.mask_ = list.places_.size() - 1;
  list.begins_.push_back(0);
  for (const std::string_view word : words) {
    const std::string number = "word " + std::to_string(list.hashes_.size() + 1);
    if (word.empty()) return InvalidConfig(number + " is empty: an empty value is a missing one");
    const uint64_t hash = TextHash(word);
    if (list.Find(word, hash) != kNone) {
      constexpr size_t kShown = 60;
      return InvalidConfig(number + ", \"" + Shortened(word, kShown) + "\", stands there twice");
    }
    size_t at = hash & list.mask_;
    while (list.places_[at] != kEmpty) at = (at + 1) & list.mask_;
    list.places_[at] = static_cast<uint32_t>(list.hashes_.size());
    list.hashes_.push_back(hash);
    list.text_ += word;
    list.begins_.push_back(list.text_.size());
  }
  return list;
}

}  // namespace millrace
