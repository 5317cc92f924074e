#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace millrace {

/// Numbers names from 0 in order of arrival, so per-name data can be in a vector; also usable as a set of names.
///
/// Stores the names contiguously. Finding or adding one costs a hash and usually one memory access, even for a million
/// names. Not thread-safe; a move keeps the views from name() valid.
class NameNumbers {
 public:
  /// The number of a name; a new name gets the next number.
  size_t Add(std::string_view name);
  /// The number of a name; size() if it was not added.
  size_t Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) < size(); }
  size_t size() const { return entries_.size(); }
  std::string_view name(size_t number) const { return entries_[number].name; }

 private:
  struct Entry {
    std::string_view name;
    size_t hash = 0;
  };
  /// Index in places_ of a name, or where it would be.
  size_t PlaceOf(std::string_view name, size_t hash) const;
  void Grow();
  std::string_view Keep(std::string_view name);

  std::vector<Entry> entries_;
  std::vector<uint32_t> places_;  ///< linear probing by hash: number + 1; 0 is free
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;  ///< free space in the last block
  size_t left_ = 0;
};

}  // namespace millrace
