#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "comm/communicator.h"

namespace millrace {

/// Ranks as threads of this process.
///
/// The cluster owns a communicator per rank and a thread that delivers its messages, so that a computing rank still
/// answers. Messages are moved, not copied; a collective copies once.
///
/// The destructor joins the threads and drops undelivered messages; no call may run then or later.
class LocalCluster {
 public:
  /// `size` is at least 1.
  explicit LocalCluster(int size);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  Communicator& rank(int r) const;

  /// Makes all ranks, including it, see the loss of a rank, given by its initial number. Any thread except those that
  /// receive messages.
  void Lose(int number);

 private:
  class Rank;
  class MeetingPoint;

  /// Restarts the ranks that are not lost.
  void Begin();
  /// Lets a rank wait for the other remaining ones and restart with them. False if none is lost, or if it is lost.
  bool Shrink(const Rank& rank);

  std::vector<std::unique_ptr<Rank>> ranks_;  ///< by initial number
  std::mutex mutex_;                          // guards the members below
  std::condition_variable changed_;
  std::set<int> lost_;  ///< initial numbers of all lost ranks
  std::shared_ptr<MeetingPoint> meeting_point_;
  std::vector<Rank*> left_;  ///< remaining ranks since the last restart
  size_t shrinking_ = 0;     ///< ranks in Shrink
  uint64_t rounds_ = 0;      ///< number of restarts
};

}  // namespace millrace
