#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/status.h"

namespace millrace {

/// A rank's received messages, their receiver, and the threads waiting for them; shared by communicators with their own
/// thread. Only that thread calls the receiver.
///
/// Thread-safe; HandOver and Serve belong to the communicator's thread. A receiver or a `done` must not call the
/// Communicator functions implemented here.
class Inbox {
 public:
  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  /// Appends a message. Never waits for a receiver.
  void Put(int from, std::string message);

  /// See Communicator. WaitUntil fails with the status of Fail or FailWaits.
  void SetReceiver(MessageReceiver* receiver);
  Status WaitUntil(const std::function<bool()>& done);

  /// Makes WaitUntil fail with `status` from now on, including current waiters. Only the first call has an effect.
  void Fail(Status status);
  /// Declares that awaited messages may never come: current and future waiters fail with `status`. Only the first call
  /// has an effect. Returns whether anybody waits.
  bool FailWaits(Status status);
  /// The status of Fail, or ok.
  Status failure() const;
  /// Resets to empty without failure. It must have no receiver and no waiters.
  void Reset();

  /// Delivers the first message and checks waiters; false if there is no message or no receiver. An exception of either
  /// fails the inbox.
  bool HandOver();
  /// Delivers messages until a stop request; sleeps when idle.
  void Serve(const std::stop_token& stop);

 private:
  struct Message {
    int from;
    std::string bytes;
  };
  /// On the stack of a waiting thread.
  struct Waiter {
    const std::function<bool()>* done;
    bool is_done = false;
  };

  std::unique_lock<std::mutex> TakeTurn();
  void AskWaiters();

  // A receiver and a `done` run with turn_ held, one at a time.
  std::mutex turn_;
  int wanting_turn_ = 0;                ///< callers to which the communicator's thread yields. Under queue_mutex_
  std::condition_variable turn_taken_;  ///< with queue_mutex_
  std::vector<Waiter*> waiters_;        ///< under turn_
  std::condition_variable woken_;       ///< with turn_: a waiter is done, or the inbox failed

  mutable std::mutex queue_mutex_;  ///< can be taken with turn_ held
  std::condition_variable_any work_;
  std::deque<Message> queue_;
  MessageReceiver* receiver_ = nullptr;  ///< changes under both mutexes
  Status failure_;                       ///< changes under both mutexes
  Status waits_failure_;                 ///< under turn_
};

}  // namespace millrace
