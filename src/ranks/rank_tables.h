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
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/wire.h"
#include "kernels/row_locks.h"
#include "ranks/key_lists.h"
#include "ranks/rank_calls.h"
#include "table/table_factory.h"

namespace millrace {

/// How tables of which each rank has a part send their rows.
struct RankTableOptions {
  WireFloat wire =
      WireFloat::kFloat32;  ///< of weights that are pulled, gradients that are pushed, rows that are copied
  /// Pushes of a table that may be under way: another one waits for the first of them. So what a worker pulls lacks no
  /// more of its own updates than these, and those between a Fetch and its Pull.
  size_t pushes_under_way = 1;
  /// Pushes of a table between two exchanges of the rows that ranks train copies of (ranks/row_copies.h); 0: they train
  /// on none, and each pull and push goes to the owners.
  int geo_steps = 0;
};

/// What became of the gradients that went to the owners of rows, one push for each table, batch and owner; of copies
/// one for each table, exchange and owner.
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
  enum class Request : uint8_t {
    kPull,
    kPush,
    kCopyRows,
    kSave,
    kSaveFile,
    kStats,
    kFindNonFinite,
    kShrink,
    kWasSaved,
    kBeginChanges,
    kCountChanges,
    kCount
  };
  /// A part of a table, as this rank has it.
  struct Part {
    SparseTable* rows = nullptr;
    std::atomic<int64_t>* applied = nullptr;  ///< pushes so far
    RowLocks* locks = nullptr;                ///< of rows that count, so that no push loses counts of another
    std::function<Status()> flush;            ///< sends what this rank has kept, and waits for what is under way
  };

  explicit RankTables(RankCalls& calls);
  ~RankTables();
  RankTables(const RankTables&) = delete;
  RankTables& operator=(const RankTables&) = delete;

  int rank() const { return calls_->communicator().rank(); }
  int ranks() const { return calls_->communicator().size(); }
  /// Empty where others have all rows.
  ShardRange ShardsOf(int rank) const;
  /// Whose part of a table has the shard.
  int OwnerOf(uint32_t shard) const { return owners_[shard]; }

  /// From now on the last `servers` ranks, fewer than there are, have all rows, and train nothing; with 0 every rank
  /// does both. On all ranks alike. kInvalidConfig while there are tables whose rows would have other owners.
  Status SetServers(int servers);
  /// Ranks that train: the first ones.
  int trainers() const { return ranks() - servers_; }

  /// `part` outlives the call of Remove. Of several of a name, as where one is to take another's place, the last one
  /// that was added answers.
  void Add(const std::string& table, Part part);
  void Remove(const std::string& table, const SparseTable* rows);

  /// The lists of keys of this rank's pulls and pushes.
  KeyLists& lists() { return lists_; }
  /// What others pulled from `part` is to be looked for again.
  void ForgetRows(const SparseTable* part);

  /// What a request begins with; what is asked follows.
  static void Start(Request what, const std::string& table, WireWriter* request);
  // As those of RankCalls.
  Status Begin(std::span<std::optional<std::string>> requests, RankCalls::Call* call) {
    return calls_->Begin(RankService::kTables, requests, call);
  }
  Status Wait(RankCalls::Call* call, std::vector<std::string_view>* answers) { return calls_->Wait(call, answers); }
  /// Waits for the same, and leaves the answers to a later Wait.
  Status WaitUntilOver(const RankCalls::Call& call) {
    return calls_->WaitUntil([&call] { return call.is_over(); }, {});
  }
  Status Ask(std::vector<std::optional<std::string>> requests, std::vector<std::string>* answers) {
    return calls_->Ask(RankService::kTables, std::move(requests), answers);
  }

  /// While no worker pushes: waits until the pushes of this rank, and what it has made of copies, have been applied,
  /// and what it fetches ahead is here: afterwards it asks no rank for rows, until it pulls, fetches or pushes again.
  /// What went wrong with a push comes back.
  Status Flush();
  /// Counts a push that is about to be applied here, `seen` pushes after the start.
  void CountApplied(std::atomic<int64_t>& applied, int64_t seen);
  /// Whether this rank gathers the rows of files that their owners could write.
  bool gathers_files() const { return gathers_files_; }
  /// From now on it does, since the owner of its rows did not write `path`, which was made here. Says so, once.
  void GatherFiles(const std::string& path, std::string_view reason);
  void CountSent(int64_t pushes) { sent_ += pushes; }
  void CountPull(bool was_fetched) { ++(was_fetched ? fetched_pulls_ : other_pulls_); }
  /// Of this rank for training, so far: pulls whose rows were here or asked for ahead, and others.
  std::pair<int64_t, int64_t> pulls() const { return {fetched_pulls_, other_pulls_}; }
  /// So far.
  RankPushes pushes() const { return {sent_, applied_, late_, latest_}; }
  /// The number of rows that this rank owns in all tables, and their bytes of memory. Not while tables are created.
  std::pair<int64_t, int64_t> RowsHere();

 private:
  void FindOwners();
  Status Answer(int from, std::string_view request, std::string* answer);
  Status AnswerPull(int from, const Part& part, WireReader* in, WireWriter* out);
  Status AnswerPush(int from, const Part& part, WireReader* in);
  Status AnswerCopyRows(const Part& part, WireReader* in, WireWriter* out);
  Status AnswerCounted(Request what, const Part& part, WireReader* in, WireWriter* out);

  RankCalls* calls_;
  int servers_ = 0;
  std::vector<int> owners_;  ///< by virtual shard
  KeyLists lists_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Part>, std::less<>> parts_;
  std::mutex answering_;  ///< held while rows are read or changed for another rank, so that they stay meanwhile
  std::mutex known_mutex_;
  PeerKeyLists known_;
  RowBatch rows_;               ///< of a request, as are
  std::vector<uint64_t> keys_;  ///< these
  std::vector<float> values_;   ///< these
  std::vector<float> squares_;  ///< and these
  std::vector<float> now_;      ///< rows as they are sent back
  std::atomic<bool> gathers_files_{false};
  std::atomic<int64_t> fetched_pulls_{0};
  std::atomic<int64_t> other_pulls_{0};
  std::atomic<int64_t> sent_{0};
  std::atomic<int64_t> applied_{0};
  std::atomic<int64_t> late_{0};
  std::atomic<int64_t> latest_{0};
};

/// The classes of `parts`, for tables of which each rank has a part: those that it makes keep the rows of this rank in
/// a table of `parts` and ask `ranks` for the others. Both outlive the tables.
///
/// Pull and Push take keys of all ranks. A pull costs a message to each rank that has one of them and one back; a push
/// the same, but it does not wait: RankTables::Flush does. With geo_steps a rank has copies of others' rows instead.
/// Load keeps what is this rank's; Save, stats, FindNonFinite and, of a table that counts shows and clicks
/// (CountedTable), what that has are of the whole table.
TableFactory RankTableFactory(const TableFactory& parts, RankTables& ranks, const RankTableOptions& options = {});

/// Gives a table that such a factory made other options, while nobody uses it. False of another one, which has all its
/// rows here. kInvalidConfig as RowCopies::Create.
Result<bool> SetRankTableOptions(SparseTable& table, const RankTableOptions& options);

}  // namespace millrace
