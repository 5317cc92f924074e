#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/file_queue.h"
#include "ranks/rank_calls.h"

namespace millrace {

/// The files of a job's passes, and of its evaluations, which its ranks read together: rank 0 counts, and whoever asks
/// gets the next number of the pass that he is in. So a rank that is slow, or has long files, reads fewer of them.
///
/// But each rank that trains has its equal share of files to begin with: threads of a rank that have read none yet get
/// no more than that while others may still want theirs. Otherwise the rank that asks first, with many threads, would
/// take them all. Who is done with a file takes any that is left.
///
/// Every rank has one, for all its passes and evaluations, before any asks, and keeps it until none asks any more. A
/// pass is begun once in its life. Any thread; costs a message to rank 0 and one back a file.
class RankFileQueue {
 public:
  /// Ranks below `trainers` ask. `calls` outlives the object.
  RankFileQueue(RankCalls& calls, int trainers);
  ~RankFileQueue();
  RankFileQueue(const RankFileQueue&) = delete;
  RankFileQueue& operator=(const RankFileQueue&) = delete;

  /// The queue of a pass of so many files, for one of the ranks; it must not outlive this object. Its Next fails as
  /// RankCalls::Ask does: kCancelled at a stop request, kUnavailable when a rank is lost.
  std::unique_ptr<FileQueue> OfPass(int64_t pass, size_t files);
  /// The same for the files of an evaluation, from number 0 on.
  std::unique_ptr<FileQueue> OfEvaluation(int64_t evaluation, size_t files);

 private:
  class OfOnePass;
  /// What a rank asks.
  struct Request {
    int64_t pass = 0;  ///< of evaluations negative
    uint64_t files = 0;
    FileTurn turn = FileTurn::kFirst;
  };
  struct Taken {
    size_t next = 0;
    std::vector<size_t> by_rank;
  };
  Result<size_t> Next(const Request& request, const std::stop_token& stop);
  size_t Count(const Request& request, int from);
  size_t ShareOf(size_t rank, size_t files) const;

  RankCalls* calls_;
  const size_t trainers_;
  std::mutex mutex_;
  std::map<int64_t, Taken> taken_;  ///< by pass; on rank 0
};

}  // namespace millrace
