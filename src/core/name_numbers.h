#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace millrace {

/// Numbers names from 0, in the order in which they come, so that what is known of each lies in a vector; or a set of
/// names, whose numbers nobody needs.
///
/// Keeps the names, side by side. Finding and adding one costs a hash and mostly one look at memory, for a million
/// names too. Not thread-safe; moving keeps what name() gave.
class NameNumbers {
 public:
  /// The number of a name, which is the next one when the name is new.
  size_t Add(std::string_view name);
  /// The number of a name that was added; size() for others.
  size_t Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) < size(); }
  size_t size() const { return entries_.size(); }
  std::string_view name(size_t number) const { return entries_[number].name; }

 private:
  struct Entry {
    std::string_view name;
    size_t hash = 0;
  };
  /// Where a name stands in places_, or would.
  size_t PlaceOf(std::string_view name, size_t hash) const;
  void Grow();
  std::string_view Keep(std::string_view name);

  std::vector<Entry> entries_;
  std::vector<uint32_t> places_;  ///< by hash, then the next free one: a number and 1; 0 is free
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;  ///< in the last block
  size_t left_ = 0;
};

}  // namespace millrace
