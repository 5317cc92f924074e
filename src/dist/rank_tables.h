#pragma once

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
#include "table/table_factory.h"

namespace millrace {

/// Answers the other ranks about the parts of tables that lie here, and asks them about theirs (RankService::kTables).
///
/// Any thread may ask. Every rank has the same tables, by name; a table is known here from Add to Remove, and asking
/// about another one fails where it is asked. `calls` outlives it.
class RankTables final {
 public:
  /// What can be asked; what goes out and comes back is rank_table.cc's.
  enum class Request : uint8_t { kPull, kSave, kStats, kFindNonFinite };

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
  void Add(const std::string& table, SparseTable* part);
  void Remove(const std::string& table);

  /// As RankCalls::Ask, about `table`.
  Status Ask(Request what, const std::string& table, std::span<const std::optional<std::string>> payloads,
             std::vector<std::string>* answers);

 private:
  Status Answer(std::string_view request, std::string* answer);

  RankCalls* calls_;
  std::vector<int> owners_;  ///< by virtual shard
  std::mutex mutex_;
  std::map<std::string, SparseTable*, std::less<>> parts_;
};

/// The classes of `parts`, for tables of which each rank has a part: those that it makes keep the rows of this rank in
/// a table of `parts` and ask `ranks` for the others. Both outlive the tables.
///
/// Pull takes keys of all ranks, and costs a message to each rank that has one of them and one back. Push takes rows of
/// this rank. Load keeps what is this rank's; Save, stats and FindNonFinite are of the whole table.
TableFactory RankTableFactory(const TableFactory& parts, RankTables& ranks);

}  // namespace millrace
