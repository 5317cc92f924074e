#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ranks/rank_calls.h"

namespace millrace {

/// The calls that ranks make together and in the same order where each runs the same script (RankService::kScript).
///
/// They go by messages, so that one that waits can be stopped, and ranks that are in different calls learn of it: what
/// is a collective of the communicator comes behind one of these. One thread at a time. Every rank has an object before
/// any calls Together; `calls` outlives it.
class CollectiveOrder {
 public:
  explicit CollectiveOrder(RankCalls& calls);
  ~CollectiveOrder();
  CollectiveOrder(const CollectiveOrder&) = delete;
  CollectiveOrder& operator=(const CollectiveOrder&) = delete;

  /// Waits until every rank is in its next call; (*all)[r] is what rank r brought. Costs a message to every other rank.
  ///
  /// kInvalidConfig on all ranks when they do not name the same `call`; kUnavailable when a rank is lost, or has ended;
  /// kCancelled at a stop request. After any of them the ranks do not meet again: later calls are kUnavailable.
  Status Together(std::string_view call, std::string_view mine, std::vector<std::string>* all,
                  const std::stop_token& stop = {});

  /// What rank 0 does for all, and others need not call: `work` runs there, and elsewhere this waits for the next end
  /// of a call of that name on rank 0, whose failure comes back. Rank 0 waits for nobody.
  ///
  /// kInvalidConfig when rank 0 has gone on to a call of Together without it; kUnavailable and kCancelled as above, but
  /// ranks meet again.
  Status ByLeader(const std::string& call, const std::function<Status()>& work, const std::stop_token& stop = {});

 private:
  struct Arrival {
    std::string call;
    std::string host;
    std::string brought;
  };
  using Arrivals = std::vector<std::optional<Arrival>>;  ///< by rank

  int rank() const { return calls_->communicator().rank(); }
  int ranks() const { return calls_->communicator().size(); }
  Status OnMessage(int from, std::string_view message);
  Status TellOthers(std::string_view call, std::string_view mine);
  Status Arrive(int rank, uint64_t number, Arrival arrival);
  bool AreAllIn(uint64_t number);
  /// Whether all are in the same call.
  Status Compare(const Arrivals& arrivals) const;

  RankCalls* calls_;
  uint64_t number_ = 0;  ///< of the call that this rank is in, or was in last
  bool has_ended_ = false;
  std::mutex mutex_;
  std::map<uint64_t, Arrivals> arrivals_;
  std::map<std::string, std::deque<Status>> done_;  ///< by rank 0, by call: what this rank has not asked for
};

}  // namespace millrace
