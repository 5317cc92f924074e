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

/// The messages that came to a rank, who takes them, and who waits for what they bring: what communicators with a
/// thread of their own share. Only that thread calls the receiver.
///
/// Thread-safe; HandOver and Serve belong to the communicator's thread. Those of Communicator's calls that lie here
/// must not be made by a receiver or by a `done`.
class Inbox {
 public:
  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  /// Puts a message behind the others. Never waits for a receiver.
  void Put(int from, std::string message);

  /// As Communicator says.
  void SetReceiver(MessageReceiver* receiver);
  Status WaitUntil(const std::function<bool()>& done);

  /// From now on WaitUntil returns `status`, and those who wait do so at once. Only the first counts.
  void Fail(Status status);
  /// From now on nothing may come that is waited for: who waits, or will have to, gets `status`. Only the first counts.
  /// True when somebody waits.
  bool FailWaits(Status status);
  /// What it failed with by Fail, or ok.
  Status failure() const;
  /// Begins anew: what has come and what it failed with are forgotten. By then it has no receiver, and nobody waits.
  void Reset();

  /// Hands the first message to the receiver and asks those who wait; false when there is none or no receiver. What
  /// either of them throws fails the inbox.
  bool HandOver();
  /// Hands over until a stop request, sleeping while there is nothing to do.
  void Serve(const std::stop_token& stop);

 private:
  struct Message {
    int from;
    std::string bytes;
  };
  /// Lies on the stack of who waits.
  struct Waiter {
    const std::function<bool()>* done;
    bool is_done = false;
  };

  std::unique_lock<std::mutex> TakeTurn();
  void AskWaiters();

  // A receiver and a `done` run with turn_ held, one at a time.
  std::mutex turn_;
  int wanting_turn_ = 0;                ///< callers; the communicator's thread lets them go first. Under queue_mutex_
  std::condition_variable turn_taken_;  ///< with queue_mutex_
  std::vector<Waiter*> waiters_;        ///< under turn_
  std::condition_variable woken_;       ///< with turn_: a waiter is done, or the inbox failed

  mutable std::mutex queue_mutex_;  ///< may be taken with turn_ held
  std::condition_variable_any work_;
  std::deque<Message> queue_;
  MessageReceiver* receiver_ = nullptr;  ///< changes under both mutexes
  Status failure_;                       ///< changes under both mutexes
  Status waits_failure_;                 ///< under turn_
};

}  // namespace millrace
