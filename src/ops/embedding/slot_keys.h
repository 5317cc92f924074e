#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/embedding/row_source.h"
#include "table/unique_keys.h"

namespace millrace {

/// Numbers the distinct keys of slots that share a parameter, slot after slot. One thread.
class SlotKeys {
 public:
  SlotKeys() = default;
  /// One salt a slot; 0: its keys are the ids.
  explicit SlotKeys(std::vector<int64_t> salts) {
    salts.push_back(0);
    std::sort(salts.begin(), salts.end());
    keep_apart_ = std::adjacent_find(salts.begin(), salts.end()) == salts.end();
  }

  /// Before the first slot: there are up to `ids` ids in all. Keys go to `keys`, in the order of their numbers.
  void Start(size_t ids, UniqueKeys* unique, std::vector<uint64_t>* keys) {
    unique_ = unique;
    keys_ = keys;
    keys_->resize(ids);
    count_ = 0;
    if (!keep_apart_) unique_->Start(ids);
  }
  /// As IdRule::Apply, with the key's number for `take`.
  template <class Take, class None>
  int64_t Add(const IdRule& rule, std::span<const uint64_t> ids, int64_t vocabulary, Take take, None none) {
    if (keep_apart_) unique_->Start(ids.size());
    return rule.Apply(
        ids, vocabulary, [&](size_t i, uint64_t key) { take(i, unique_->Number(key, keys_->data(), &count_)); }, none);
  }
  /// Behind the last one.
  void End() { keys_->resize(count_); }

 private:
  bool keep_apart_ = false;  ///< each slot has a salt of its own, so that no two of them have a key in common
  UniqueKeys* unique_ = nullptr;
  std::vector<uint64_t>* keys_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace millrace
