#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "core/status.h"
#include "table/table_factory.h"

namespace millrace {

/// Answers the other ranks about the parts of tables that lie here, and asks them about theirs.
///
/// Any thread may ask. Answers are made by the thread of the communicator. Every rank has the same tables, by name; a
/// table is known here from Add to Remove, and asking about another one fails where it is asked.
class RankTables final : public MessageReceiver {
 public:
  /// What can be asked; `payload` and what comes back are docs/adr/0018-ranks.md's.
  enum class Ask : uint8_t { kPull, kSave, kStats, kFindNonFinite };

  explicit RankTables(Communicator& communicator);
  ~RankTables() override;
  RankTables(const RankTables&) = delete;
  RankTables& operator=(const RankTables&) = delete;

  Communicator& communicator() { return *communicator_; }
  ShardRange ShardsOf(int rank) const;
  /// Whose part of a table has the shard.
  int OwnerOf(uint32_t shard) const { return owners_[shard]; }

  /// `part` outlives the call of Remove.
  void Add(const std::string& table, SparseTable* part);
  void Remove(const std::string& table);

  /// Asks each rank r whose payloads[r] has a value; (*answers)[r] is what came back. Waits for all of them. The first
  /// failure comes back, with its rank.
  Status AskRanks(Ask what, const std::string& table, std::span<const std::optional<std::string>> payloads,
                  std::vector<std::string>* answers);

  void OnMessage(int from, std::string message) override;

 private:
  struct Call {
    std::atomic<int> open{0};
    std::vector<std::string> answers;  ///< by rank, with their status
  };
  void Answer(int from, std::string_view request);
  Status Serve(Ask what, const std::string& table, std::string_view payload, std::string* answer);

  Communicator* communicator_;
  std::vector<int> owners_;  ///< by virtual shard
  std::mutex mutex_;
  std::map<std::string, SparseTable*, std::less<>> parts_;
  std::map<uint64_t, Call*> calls_;
  uint64_t next_call_ = 0;
};

/// The classes of `parts`, for tables of which each rank has a part: those that it makes keep the rows of this rank in
/// a table of `parts` and ask `ranks` for the others. Both outlive the tables.
///
/// Pull takes keys of all ranks, and costs a message to each rank that has one of them and one back. Push takes rows of
/// this rank. Load keeps what is this rank's; Save, stats and FindNonFinite are of the whole table.
TableFactory RankTableFactory(const TableFactory& parts, RankTables& ranks);

}  // namespace millrace
