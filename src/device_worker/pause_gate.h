#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace millrace {

/// Lets a coordinator hold all workers between two batches: for a checkpoint, an evaluation, or the end.
///
/// A worker is busy from Enter to Leave. While it is not busy it can already have its next batch, which has not touched
/// a parameter yet. Costs two atomic stores and a load per batch without a pause.
class PauseGate {
 public:
  /// The result of the coordinator's wait.
  enum class Event { kTick, kPaused, kAllDone };

  explicit PauseGate(int workers);

  /// Call it before the workers of a pass start.
  void StartPass();

  // For workers, each with its number.
  void Enter(int worker);
  /// After a batch.
  void Leave(int worker);
  /// The worker has ended; a worker that failed within a batch calls it without Leave.
  void Done(int worker);
  /// Requests a pause; any thread.
  void Ask();

  // For the coordinator.
  Event Wait(std::chrono::milliseconds tick);
  /// Waits until a pause is requested or `tick` has passed; for callers that wait for something other than these
  /// workers.
  void WaitForAsk(std::chrono::milliseconds tick);
  /// Whether a worker is running a batch; otherwise all wait for input.
  bool AnyBusy() const;
  /// Resumes the workers after kPaused.
  void Resume();

 private:
  struct alignas(64) Flag {
    std::atomic<bool> busy{false};
  };
  void NotifyCoordinator();

  std::atomic<bool> asked_{false};
  std::vector<Flag> workers_;
  std::mutex mutex_;
  std::condition_variable coordinator_;
  std::condition_variable resumed_;
  int done_ = 0;
};

}  // namespace millrace
