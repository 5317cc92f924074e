#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/wire.h"
#include "features/text_hash.h"

namespace millrace {

/// Counts occurrences of strings. Stores every distinct string. One thread.
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
  /// Appends the counts to a message; AddFrom adds those in a message and fails (WireReader::ok) if it is malformed.
  void Put(WireWriter* out) const {
    out->Put(static_cast<uint64_t>(counts_.size()));
    for (const auto& [word, count] : counts_) {
      out->PutText(word);
      out->Put(count);
    }
  }
  void AddFrom(WireReader* in) {
    const auto size = in->Get<uint64_t>();
    for (uint64_t i = 0; i < size && in->ok(); ++i) {
      const std::string_view word = in->GetText();
      Add(word, in->Get<int64_t>());
    }
  }
  /// By descending count, ties by bytes. Valid until the next Add.
  std::vector<std::pair<std::string_view, int64_t>> Sorted() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return TextHash(word); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace millrace
