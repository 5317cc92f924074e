#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "dist/rank_calls.h"
#include "dist/wire.h"
#include "table/table_factory.h"

namespace millrace {

/// How tables of which each rank has a part send their rows.
struct RankTableOptions {
  WireFloat wire = WireFloat::kFloat32;  ///< of weights that are pulled and gradients that are pushed
  /// Pushes of a table that may be under way: another one waits for the first of them. So what a worker pulls lacks no
  /// more of its own updates than these.
  size_t pushes_under_way = 1;
};

/// What became of the gradients that went to the owners of rows, one push for each table, batch and owner.
struct RankPushes {
  int64_t sent = 0;     ///< by this rank, also to itself
  int64_t applied = 0;  ///< to the parts of this rank
  int64_t late = 0;     ///< others that were applied between a push and the pull before it, over all `applied`
  int64_t latest = 0;   ///< the most of these for one push

  /// Adds those of another rank.
  void Add(const RankPushes& other) {
    sent += other.sent;
    applied += other.applied;
    late += other.late;
    latest = std::max(latest, other.latest);
  }
};

/// Answers the other ranks about the parts of tables that lie here, and asks them about theirs (RankService::kTables).
///
/// Any thread may ask. Every rank has the same tables, by name; a table is known here from Add to Remove, and asking
/// about another one fails where it is asked. `calls` outlives it.
class RankTables final {
 public:
  /// What can be asked; what goes out and comes back is rank_table.cc's.
  enum class Request : uint8_t { kPull, kPush, kSave, kStats, kFindNonFinite };
  /// A part of a table, as this rank has it.
  struct Part {
    SparseTable* rows = nullptr;
    std::atomic<int64_t>* applied = nullptr;  ///< pushes so far
    std::function<Status()> flush;            ///< waits for the pushes that this rank has under way
  };

  explicit RankTables(RankCalls& calls);
  ~RankTables();
  RankTables(const RankTables&) = delete;
  RankTables& operator=(const RankTables&) = delete;

  int rank() const { return calls_->communicator().rank(); }
  int ranks() const { return calls_->communicator().size(); }
  ShardRange ShardsOf(int rank) const;
  /// Whose part of a table has the shard.
  int OwnerOf(uint32_t shard) const { return owners_[shard]; }

  /// `part` outlives the call of Remove.
  void Add(const std::string& table, Part part);
  void Remove(const std::string& table);

  // As those of RankCalls, about `table`.
  Status Begin(Request what, const std::string& table, std::span<const std::optional<std::string>> payloads,
               RankCalls::Call* call);
  Status Wait(RankCalls::Call* call, std::vector<std::string>* answers) { return calls_->Wait(call, answers); }
  Status Ask(Request what, const std::string& table, std::span<const std::optional<std::string>> payloads,
             std::vector<std::string>* answers);

  /// Waits until the pushes of this rank have been applied; what went wrong with one comes back.
  Status Flush();
  /// Counts a push that is about to be applied here, `seen` pushes after the start.
  void CountApplied(std::atomic<int64_t>& applied, int64_t seen);
  void CountSent(int64_t pushes) { sent_ += pushes; }
  /// So far.
  RankPushes pushes() const { return {sent_, applied_, late_, latest_}; }

 private:
  Status Answer(std::string_view request, std::string* answer);

  RankCalls* calls_;
  std::vector<int> owners_;  ///< by virtual shard
  std::mutex mutex_;
  std::map<std::string, Part, std::less<>> parts_;
  std::atomic<int64_t> sent_{0};
  std::atomic<int64_t> applied_{0};
  std::atomic<int64_t> late_{0};
  std::atomic<int64_t> latest_{0};
};

/// The classes of `parts`, for tables of which each rank has a part: those that it makes keep the rows of this rank in
/// a table of `parts` and ask `ranks` for the others. Both outlive the tables.
///
/// Pull and Push take keys of all ranks. A pull costs a message to each rank that has one of them and one back; a push
/// the same, but it does not wait: RankTables::Flush does. Load keeps what is this rank's; Save, stats and
/// FindNonFinite are of the whole table.
TableFactory RankTableFactory(const TableFactory& parts, RankTables& ranks, const RankTableOptions& options = {});

}  // namespace millrace
