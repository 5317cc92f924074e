#include "comm/inbox.h"

#include <algorithm>
#include <utility>

#include "core/caught.h"

namespace millrace {

void Inbox::Put(int from, std::string message) {
  const std::lock_guard lock(queue_mutex_);
  queue_.push_back({from, std::move(message)});
  work_.notify_one();
}

std::unique_lock<std::mutex> Inbox::TakeTurn() {
  // Mutexes are not fair: during a stream of messages a caller could wait as long as the stream lasts.
  {
    const std::lock_guard lock(queue_mutex_);
    ++wanting_turn_;
  }
  std::unique_lock turn(turn_);
  {
    const std::lock_guard lock(queue_mutex_);
    --wanting_turn_;
    turn_taken_.notify_one();
  }
  return turn;
}

void Inbox::SetReceiver(MessageReceiver* receiver) {
  const std::unique_lock turn = TakeTurn();
  const std::lock_guard lock(queue_mutex_);
  receiver_ = receiver;
  work_.notify_one();
}

Status Inbox::WaitUntil(const std::function<bool()>& done) {
  std::unique_lock turn = TakeTurn();
  if (!failure_.ok()) return failure_;
  if (done()) return Status::Ok();
  if (!waits_failure_.ok()) return waits_failure_;
  Waiter waiter{&done};
  waiters_.push_back(&waiter);
  woken_.wait(turn, [&] { return waiter.is_done || !failure_.ok() || !waits_failure_.ok(); });
  std::erase(waiters_, &waiter);
  if (waiter.is_done) return Status::Ok();
  return failure_.ok() ? waits_failure_ : failure_;
}

void Inbox::Fail(Status status) {
  const std::unique_lock turn = TakeTurn();
  const std::lock_guard lock(queue_mutex_);
  if (failure_.ok()) failure_ = std::move(status);
  woken_.notify_all();
}

bool Inbox::FailWaits(Status status) {
  const std::unique_lock turn = TakeTurn();
  if (waits_failure_.ok()) waits_failure_ = std::move(status);
  woken_.notify_all();
  return !waiters_.empty();
}

Status Inbox::failure() const {
  const std::lock_guard lock(queue_mutex_);
  return failure_;
}

void Inbox::Reset() {
  const std::unique_lock turn = TakeTurn();
  const std::lock_guard lock(queue_mutex_);
  queue_.clear();
  failure_ = Status::Ok();
  waits_failure_ = Status::Ok();
}

bool Inbox::HandOver() {
  Status status;
  {
    std::unique_lock queue(queue_mutex_);
    turn_taken_.wait(queue, [&] { return wanting_turn_ == 0; });
  }
  {
    const std::unique_lock turn(turn_);
    Message message;
    {
      const std::lock_guard queue(queue_mutex_);
      if (queue_.empty() || receiver_ == nullptr) return false;
      message = std::move(queue_.front());
      queue_.pop_front();
    }
    status = Caught("taking a message of another rank", [&] {
      receiver_->OnMessage(message.from, std::move(message.bytes));
      AskWaiters();
      return Status::Ok();
    });
  }
  if (!status.ok()) Fail(std::move(status));
  return true;
}

void Inbox::AskWaiters() {
  bool any = false;
  for (Waiter* waiter : waiters_) {
    if (waiter->is_done || !(*waiter->done)()) continue;
    waiter->is_done = true;
    any = true;
  }
  if (any) woken_.notify_all();
}

void Inbox::Serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (HandOver()) continue;
    std::unique_lock lock(queue_mutex_);
    work_.wait(lock, stop, [&] { return !queue_.empty() && receiver_ != nullptr; });
  }
}

}  // namespace millrace
