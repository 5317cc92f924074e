#pragma once

#include <cstdint>
#include <mutex>
#include <stop_token>

#include "ranks/rank_calls.h"

namespace millrace {

/// Ends what all ranks do at the same time, each by itself, as soon as one of them gives it up: the others would work
/// on for nothing.
///
/// Every rank has one before any of them begins, and begins as often as the others. What was given up is over on all:
/// who comes late finds that it has ended. Costs a message to each rank where one gives up, else nothing.
class GroupCancellation {
 public:
  /// `calls` outlives the object.
  explicit GroupCancellation(RankCalls& calls);
  ~GroupCancellation();
  GroupCancellation(const GroupCancellation&) = delete;
  GroupCancellation& operator=(const GroupCancellation&) = delete;

  /// This rank begins the next thing. The token is asked to stop once a rank, this one or another, has given it up.
  std::stop_token Begin();
  /// Gives up what was begun last. Any thread, and more than once. What keeps the others from hearing of it has lost
  /// them, which they hear of as well.
  void GiveUp();

 private:
  /// Somebody gave up thing `number`.
  void EndHere(int64_t number);

  RankCalls* calls_;
  std::mutex mutex_;
  int64_t begun_ = 0;     ///< things so far
  int64_t given_up_ = 0;  ///< number of the last one, from 1
  std::stop_source stop_;
};

}  // namespace millrace
