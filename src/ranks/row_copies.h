#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "kernels/row_locks.h"
#include "ranks/key_lists.h"
#include "ranks/object_pool.h"
#include "ranks/pending_fetches.h"
#include "ranks/rank_tables.h"
#include "table/key_index.h"
#include "table/row_policy.h"
#include "table/slab_rows.h"

namespace millrace {

/// Copies of the rows of a table that other ranks own, on which this rank trains (dist { update: GEO }).
///
/// A batch reads a row from its owner when the copy is not here or is old, and updates the copy in place, by the rule
/// of the table. After every so many pushes (RankTableOptions::geo_steps) this rank tells the owners how the copies
/// that it used have moved, and is told what the rows are now:
///
///     owner: row += share * moved        rank: copy += row - (what this rank knew of it)
///
/// A copy is old when two exchanges have begun since it was last asked for. So a batch lacks what others have made of a
/// row in at most three times geo_steps pushes of theirs, where ranks are equally fast. State goes with the weights, so
/// that rows learn as fast as their whole history says.
///
/// The share is 1 where nobody else moved the row meanwhile, as with most rows. Ranks that trained from the same row
/// would move it too far together: by adagrad, each without the squares of the others, which would have made its steps
/// shorter. The owner makes up for that. It has all squares, and is told which ones the copy began with
/// (RowPolicy::AddAfterOthers); squares themselves count whole. By sgd the share depends on
/// how many pushes between two exchanges used the row. It is 1 for a single one. It is 2 / trainers for all of them, as
/// other ranks mostly use such a row, too. For fewer it lies in between. What ftrl sums up counts whole.
///
/// A copy costs twice the floats of a row, and stays as long as the object: a rank comes to have one of each row of
/// others that it uses. An exchange sends a key, and a row there and back, for each row that was used since the last
/// one.
///
/// Find, Update and Fetch may be called by any number of threads. Find waits for owners where a row is not here, and
/// the Update that begins an exchange for the one before. Both return what failed there: kUnavailable when a rank is
/// lost, or when there is no memory for a copy. No update of a copy is lost: each holds the copy's lock meanwhile, as
/// does what comes from its owner. The owner's own workers update its rows as Hogwild workers do.
class RowCopies {
 public:
  /// `part`, which this rank has of the table, outlives the object, as `ranks` does. kInvalidConfig for a class of
  /// tables that gives no rows away, and for rules whose state is no sum.
  static Result<std::unique_ptr<RowCopies>> Create(SparseTable& part, RankTables& ranks,
                                                   const RankTableOptions& options);
  ~RowCopies();
  RowCopies(const RowCopies&) = delete;
  RowCopies& operator=(const RowCopies&) = delete;

  /// Asks for the rows of `list` that Find will want, without waiting.
  Status Fetch(const std::shared_ptr<KeyList>& list);
  /// The copy of each key of other ranks, by its position in `list`; null for keys of this rank. They stay where they
  /// are.
  Status Find(const std::shared_ptr<KeyList>& list, std::vector<float*>* copies);
  /// Updates the copies that Find gave for `list` with the gradients of all its keys, and exchanges when it is time.
  Status Update(const KeyList& list, const std::vector<float*>& copies, std::span<const float> gradients,
                const PushContext& context);
  /// Exchanges all that was used, and waits for it. From then on every copy is old.
  Status Flush();

 private:
  /// Floats of a copy: the row, what is known of it, Marks.
  static size_t CopyFloats(const TableShape& shape);
  /// What stands behind a copy and what is known of it.
  struct Marks {
    uint32_t uses = 0;                 ///< pushes since the last exchange that has it; under the copy's lock
    std::atomic<uint32_t> sent_at{0};  ///< the number of the last exchange that has it; 0: none
    std::atomic<uint32_t> read_at{0};  ///< the number of the exchange before which the owner's row was read; 0: never
  };
  struct Used {
    uint64_t key = 0;
    float* row = nullptr;
  };
  /// How copies have moved that go to one owner, and the squares that it told of each before.
  struct Moved {
    std::vector<float> floats;
    std::vector<float> squares;  ///< of rules that have them
  };
  /// Rows that were asked for, by owner.
  struct Asked {
    std::shared_ptr<KeyList> list;  ///< that they were asked for ahead of; or null
    uint32_t at = 0;                ///< the number of the next exchange then
    std::vector<std::vector<Used>> rows;
    std::vector<std::optional<std::string>> requests;
    RankCalls::Call call;
    std::vector<std::string_view> answers;
    // Buffers of what asks.
    std::vector<uint64_t> keys;
    std::vector<float> now;
    std::vector<float*> copies;

    void Start(size_t ranks);
  };
  static constexpr uint32_t kShards = 16;
  static constexpr uint32_t kOld = 2;  ///< exchanges that have begun since a copy was asked for

  RowCopies(SparseTable& part, ReplicaSource& rows, RankTables& ranks, const RankTableOptions& options);
  size_t rank() const { return static_cast<size_t>(ranks_->rank()); }
  size_t ranks() const { return static_cast<size_t>(ranks_->ranks()); }
  float* KnownOf(float* row) const { return row + floats_; }
  Marks& MarksOf(float* row) const;
  KeyIndexShard& ShardOf(uint64_t hash) { return *shards_[ShardOfHash(hash) * kShards / kVirtualShards]; }
  float* FindOrMake(uint64_t key);
  bool IsOld(float* row) const { return exchange_.load() - MarksOf(row).read_at.load() >= kOld; }
  /// Puts into `asked` the rows of `list` that were never read or are old; false: there are none. `copies` becomes all.
  Result<bool> FindOld(const KeyList& list, Asked* asked, std::vector<float*>* copies);
  /// Asks for the rows of `asked`, with how they have moved, or nothing.
  Status Begin(std::span<const Moved> moved, Asked* asked);
  /// Waits for them. Those that are old, or all, become what came.
  Status Take(bool all, Asked* asked);
  // With exchange_mutex_ held.
  Status BeginExchange();
  Status EndExchange();
  /// Of a row that so many of the pushes since the last exchange used; 1 where its owner knows better.
  float WeightOf(uint32_t uses, int64_t pushes) const;

  SparseTable* part_;
  const RowPolicy* policy_;
  RankTables* ranks_;
  const RankTableOptions options_;
  const size_t dim_;
  const size_t floats_;  ///< of a row
  SlabRows rows_;        ///< of a copy: the row, what is known of it, Marks
  RowLocks locks_;       ///< of copies. An update that another thread overwrote would be taken for a move back
  std::vector<std::unique_ptr<KeyIndexShard>> shards_;
  Reclaimer reclaimer_;
  std::atomic<uint32_t> exchange_{kOld};  ///< the number of the next one
  std::atomic<int64_t> pushes_{0};
  std::atomic<float> lr_{0};  ///< of the last push
  ObjectPool<Asked> asked_;
  ObjectPool<std::vector<Used>> first_uses_;  ///< of a push
  std::vector<std::atomic<int64_t>> seen_;    ///< by owner: pushes that its part had at the last answer
  std::mutex take_mutex_;                     ///< of what is known of copies
  std::mutex used_mutex_;
  std::vector<Used> used_;  ///< since the last exchange began
  PendingFetches<Asked> fetched_;
  std::mutex exchange_mutex_;
  bool is_under_way_ = false;
  Asked under_way_;
  int64_t exchanged_pushes_ = 0;  ///< pushes before the last exchange began
  std::vector<Used> sent_;
  std::vector<Moved> moved_;  ///< by owner
};

}  // namespace millrace
