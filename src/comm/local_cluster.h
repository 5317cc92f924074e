#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace millrace {

/// Ranks that are threads of this process: for tests, and for a job of one rank.
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

  /// Lets all ranks, it too, see that rank `rank` is lost. Any thread but those that take messages.
  void Lose(int rank);

 private:
  class Rank;
  class MeetingPoint;
  std::unique_ptr<MeetingPoint> meeting_point_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace millrace
