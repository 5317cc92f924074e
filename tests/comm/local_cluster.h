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

/// Ranks that are threads of this process.
///
/// Each rank has a communicator, which the cluster owns, and a thread that hands over its messages, so that a rank that
/// computes still answers. A message is moved, not copied; a collective copies once.
///
/// The destructor joins the threads; it drops messages that nobody took. By then no call runs, and nobody calls again.
class LocalCluster {
 public:
  /// `size` is at least 1.
  explicit LocalCluster(int size);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  Communicator& rank(int r) const;

  /// Lets all ranks, it too, see that a rank is lost, by the number that it had at first. Any thread but those that
  /// take messages.
  void Lose(int number);

 private:
  class Rank;
  class MeetingPoint;

  /// The ranks that are not lost begin anew.
  void Begin();
  /// Lets a rank wait for the others that are left, and begin anew with them. False where none is lost, or it is.
  bool Shrink(const Rank& rank);

  std::vector<std::unique_ptr<Rank>> ranks_;  ///< by their numbers
  std::mutex mutex_;                          // of what follows
  std::condition_variable changed_;
  std::set<int> lost_;  ///< numbers, of all time
  std::shared_ptr<MeetingPoint> meeting_point_;
  std::vector<Rank*> left_;  ///< since ranks began anew last
  size_t shrinking_ = 0;     ///< ranks in Shrink
  uint64_t rounds_ = 0;      ///< how often they began
};

}  // namespace millrace
