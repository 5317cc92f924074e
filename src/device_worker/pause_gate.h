#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace millrace {

/// Lets a coordinator hold all workers between two batches: for a checkpoint, an evaluation, the end.
///
/// A worker is busy from Enter to Leave. It may hold a batch while it is not busy; that batch has not touched a
/// parameter yet. Costs two atomic stores and a load a batch when nobody pauses.
class PauseGate {
 public:
  /// What the coordinator's wait ended with.
  enum class Event { kTick, kPaused, kAllDone };

  explicit PauseGate(int workers);

  /// Before the workers of a pass start.
  void StartPass();

  // Workers, each by its number.
  /// Before a batch is run; blocks while a pause lasts.
  void Enter(int worker);
  /// After a batch.
  void Leave(int worker);
  /// The worker will not come again; one that failed within a batch calls it without Leave.
  void Done(int worker);
  /// Asks for a pause; any thread.
  void Ask();

  // The coordinator.
  /// Waits until a pause was asked for and no worker is busy, or all are done, or `tick` went by.
  Event Wait(std::chrono::milliseconds tick);
  /// Waits until a pause was asked for, or `tick` went by; for who waits for others than these workers.
  void WaitForAsk(std::chrono::milliseconds tick);
  /// Whether a worker has a batch in hand; otherwise all wait for input.
  bool AnyBusy() const;
  /// Lets the workers go on after kPaused.
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
