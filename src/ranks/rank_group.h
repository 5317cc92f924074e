#pragma once

#include <google/protobuf/message_lite.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "core/status.h"
#include "ranks/group_cancellation.h"
#include "ranks/rank_calls.h"
#include "ranks/rank_tables.h"

namespace millrace {

class RankRestarts;

/// The ranks that train a job together, seen from one of them: who leads, who trains, who has which part of a table,
/// and what all of them agree on. Rank 0 leads: it alone writes to the terminal, and files, but for those of a rank's
/// own rows, dump and bad lines. Every job has a group: without a launcher that of its only rank, Solo.
///
/// Made once a process, or once for each set of ranks that go on without lost ones (ranks/rank_restarts.h). It outlives
/// the jobs' sessions, and the communicator outlives it. What is a collective of the communicator is one here: every
/// rank calls it, in the same order.
class RankGroup {
 public:
  /// `restarts`: of the job; null where lost ranks end it.
  explicit RankGroup(Communicator& communicator, RankRestarts* restarts = nullptr);
  /// A group of this process alone. Its collectives return at once.
  static std::unique_ptr<RankGroup> Solo();

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  bool leads() const { return rank() == 0; }
  /// Ranks that train: the first ones.
  int trainers() const { return tables_.trainers(); }
  /// Whether this rank trains nothing, and has rows for those who do.
  bool serves() const { return rank() >= trainers(); }
  Communicator& communicator() { return *communicator_; }
  RankCalls& calls() { return calls_; }
  RankTables& tables() { return tables_; }
  RankRestarts* restarts() const { return restarts_; }
  /// Of what ranks do together before and between batches: statistics of features, loads and evaluations, in turn.
  GroupCancellation& cancellation() { return cancellation_; }

  /// Of `count` things in a row those of this rank, or of `rank`, where it trains: the first one, and how many.
  std::pair<int, int> ShareOf(int count) const { return ShareOf(count, rank()); }
  std::pair<int, int> ShareOf(int count, int rank) const;

  // Collectives.

  /// Ok when every rank's `mine` is; otherwise the failure of the first rank that has one, on all ranks, with the rank
  /// and its host before it where it is another rank's.
  Status Agree(const Status& mine);
  /// Agree on what was begun at cancellation(), which a failure here gives up. Why is said by the rank that gave up:
  /// one that was cut short (kCancelled) though nobody asked it to stop says nothing.
  Status AgreeOnEnd(const Status& mine, const std::stop_token& asked);
  /// Gives all ranks the leader's bytes, or its message of protobuf.
  Status FromLeader(std::string* bytes) { return communicator_->Broadcast(0, bytes); }
  Status FromLeader(google::protobuf::MessageLite* message);
  /// Gives the leader everyone's bytes, by rank; `all` is empty strings elsewhere.
  Status ToLeader(std::string mine, std::vector<std::string>* all);

 private:
  explicit RankGroup(std::unique_ptr<Communicator> own);

  std::unique_ptr<Communicator> own_communicator_;  ///< of Solo
  Communicator* communicator_;
  RankRestarts* restarts_;
  RankCalls calls_;
  RankTables tables_;
  GroupCancellation cancellation_;
};

/// What rank `rank`, on `host`, failed with, as another rank tells it.
Status OfRank(int rank, std::string_view host, const Status& failure);
/// The name of this machine.
std::string HostName();

}  // namespace millrace
