#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/status.h"

namespace millrace {

class RankGroup;

/// How often the ranks of a job went on without some that were lost, and what that took. Belongs to the main thread.
class RankRestarts {
 public:
  int count() const { return static_cast<int>(lost_.size()); }
  /// Who was lost before the last restart: "rank 2 (host b)", or several.
  const std::string& last_lost() const { return lost_.back(); }
  /// From when this rank noticed each loss until training went on.
  double seconds() const { return seconds_; }
  /// Examples that were trained once more, since they had come behind the checkpoint that the others went on from. As
  /// this rank knew of them: at their own pace ranks hear of each other a little later.
  int64_t replayed() const { return replayed_; }

  /// Training ended by a failure, when so many examples of the job were trained.
  void SetReached(int64_t examples) { reached_ = examples; }
  /// Training begins, with so many examples of the job behind it.
  void GoOn(int64_t examples);

 private:
  friend Status RunOnRanks(Communicator& communicator, const std::stop_token& stop,
                           const std::function<Status(RankGroup& ranks)>& run,
                           const std::function<void(const Status& failure)>& tell);
  using Clock = std::chrono::steady_clock;

  std::vector<std::string> lost_;  ///< by restart
  double seconds_ = 0;
  int64_t replayed_ = 0;
  int64_t reached_ = 0;
  Clock::time_point noticed_;
  bool has_gone_on_ = true;  ///< since the last loss
};

/// Runs a job as one of the ranks of `communicator`, whose ranks all call this, and returns what `run` came to, behind
/// the others: who still asks for rows of this rank gets them.
///
/// When ranks are lost and the others can go on without them (Communicator::Shrink), these run it once more, as fewer
/// ranks: `run` then goes on from what the job has saved (RankGroup::restarts()). Where they cannot, and after a stop
/// request, each ends with the failure. `tell` says one, on the rank that leads, before any rank returns: a launcher
/// may end all as soon as one of them has failed.
Status RunOnRanks(Communicator& communicator, const std::stop_token& stop,
                  const std::function<Status(RankGroup& ranks)>& run,
                  const std::function<void(const Status& failure)>& tell);

}  // namespace millrace
