#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "core/file_queue.h"
#include "dist/rank_calls.h"

namespace millrace {

/// The files of a job's passes, and of its evaluations, which its ranks read together: rank 0 counts, and whoever asks
/// gets the next number of the pass that he is in. So a rank that is slow, or has long files, reads fewer of them.
///
/// Every rank has one, for all its passes and evaluations, before any asks, and keeps it until none asks any more. A
/// pass is begun once in its life. Any thread; costs a message to rank 0 and one back a file.
class RankFileQueue {
 public:
  /// `calls` outlives the object.
  explicit RankFileQueue(RankCalls& calls);
  ~RankFileQueue();
  RankFileQueue(const RankFileQueue&) = delete;
  RankFileQueue& operator=(const RankFileQueue&) = delete;

  /// The queue of a pass, for one of the ranks; it must not outlive this object. Its Next fails as RankCalls::Ask does:
  /// kCancelled at a stop request, kUnavailable when a rank is lost.
  std::unique_ptr<FileQueue> OfPass(int64_t pass);
  /// The same for the files of an evaluation, from number 0 on.
  std::unique_ptr<FileQueue> OfEvaluation(int64_t evaluation);

 private:
  class OfOnePass;
  Result<size_t> Next(int64_t pass, const std::stop_token& stop);
  size_t Count(int64_t pass);

  RankCalls* calls_;
  std::mutex mutex_;
  std::map<int64_t, size_t> next_;  ///< by pass, those of evaluations negative; on rank 0
};

}  // namespace millrace
