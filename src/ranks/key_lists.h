#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/wire.h"
#include "table/sparse_table.h"

namespace millrace {

/// The distinct keys that a pull of a batch asks for and its push names again, by the ranks that have their rows. A
/// rank is told the keys of a list once, and its number from then on. Constant, but for who knows it.
class KeyList {
 public:
  struct Part {
    std::vector<uint64_t> keys;
    std::vector<uint32_t> positions;  ///< of these keys among all
  };

  /// In the order in which they were asked for.
  std::span<const uint64_t> keys() const { return keys_; }
  /// Those whose rows rank `rank` has.
  const Part& of(size_t rank) const { return parts_[rank]; }
  /// Held from before KeyLists::Put until what it wrote has been sent: who is told the number alone has then been told
  /// the keys before.
  std::mutex& sending() { return sending_; }

 private:
  friend class KeyLists;
  uint64_t number_ = 0;
  std::vector<uint64_t> keys_;
  std::vector<Part> parts_;
  std::mutex sending_;
  std::vector<bool> is_known_;  ///< by rank
};

/// The lists of this rank's pulls. A list is forgotten, here and where it is known, when its last owner lets it go: the
/// other ranks learn of that with a later request. Any thread.
class KeyLists {
 public:
  /// `owners` has the rank of each virtual shard, and outlives the object; lists may outlive it.
  KeyLists(const std::vector<int>& owners, int ranks);
  ~KeyLists();
  KeyLists(const KeyLists&) = delete;
  KeyLists& operator=(const KeyLists&) = delete;

  /// The list of `keys`: one that somebody still has, where it is the same, as two tables that are looked up by the
  /// same slots have it.
  std::shared_ptr<KeyList> Find(std::span<const uint64_t> keys);
  /// Appends the list to a request for rank `to`, with list.sending() held.
  void Put(KeyList& list, int to, WireWriter* out);

 private:
  struct Store;
  const std::vector<int>* owners_;
  std::shared_ptr<Store> store_;
};

/// What this rank knows of the lists of the others, and the rows that their last pulls found here, so that a push need
/// not look for them again. One thread at a time.
class PeerKeyLists {
 public:
  struct List {
    std::vector<uint64_t> keys;
    std::map<const SparseTable*, RowBatch> rows;  ///< of tables that they were pulled from for training
  };

  explicit PeerKeyLists(int ranks) : lists_(static_cast<size_t>(ranks)) {}

  /// Takes what KeyLists::Put wrote from the front of a request of rank `from`. Null where that cannot be.
  List* Take(int from, WireReader* in);
  /// Rows of `table` are elsewhere now, or gone.
  void ForgetRows(const SparseTable* table);

 private:
  std::vector<std::map<uint64_t, List>> lists_;  ///< by rank, then number
  std::vector<List> free_;                       ///< their buffers
  std::vector<uint64_t> forgotten_;
};

}  // namespace millrace
