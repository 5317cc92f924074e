#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/event_count.h"
#include "core/status.h"

namespace millrace {

/// Passes move-only items between threads, first in first out, with a bounded capacity.
///
/// Any number of producers and consumers. Items leave in the order in which their Push took effect, so in order per
/// producer. A Push or Pop that does not wait is lock-free and does not allocate; one that waits sleeps, and returns
/// immediately at a stop request. Must outlive its users.
template <class T>
class Channel {
 public:
  /// `capacity` is at least 1.
  explicit Channel(size_t capacity)
      : capacity_(capacity < 1 ? 1 : capacity), cells_(std::make_unique<Cell[]>(capacity_)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Waits while the channel is full. After Close, fails with the status of Close, or kCancelled if that was ok, and
  /// drops the item. Fails with kCancelled after a stop request.
  Status Push(T item, const std::stop_token& stop) {
    if (TryPush(item)) return Status::Ok();
    return PushSlowly(item, stop);
  }

  /// Waits while the channel is empty and open. After Close, once empty, returns nullopt, or fails with the status of
  /// Close if that is a failure. Fails with kCancelled after a stop request.
  Result<std::optional<T>> Pop(const std::stop_token& stop) {
    std::optional<T> item = TryPop();
    if (item) return item;
    return PopSlowly(stop);
  }

  /// Takes the item and returns true; leaves it and returns false if the channel is full or closed. Never waits.
  bool TryPush(T& item) {
    uint64_t tail = tail_.load(std::memory_order_acquire);
    for (;;) {
      if ((tail & kClosed) != 0) return false;
      Cell& cell = cells_[tail % capacity_];
      const uint64_t free_turn = 2 * (tail / capacity_);
      const uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == free_turn) {
        if (tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
          cell.item.emplace(std::move(item));
          cell.turn.store(free_turn + 1, std::memory_order_release);
          not_empty_.NotifyOne();
          // A producer woken for the next cell while this one was not free yet went back to sleep.
          if (IsFree(tail + 1)) not_full_.NotifyOne();
          return true;
        }
      } else if (turn < free_turn) {
        return false;  // the item of the previous lap is still there
      } else {
        tail = tail_.load(std::memory_order_acquire);
      }
    }
  }

  /// The first item; nullopt if there is none. Never waits.
  std::optional<T> TryPop() {
    uint64_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      Cell& cell = cells_[head % capacity_];
      const uint64_t full_turn = 2 * (head / capacity_) + 1;
      const uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == full_turn) {
        if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
          std::optional<T> item(std::move(*cell.item));
          cell.item.reset();
          cell.turn.store(full_turn + 1, std::memory_order_release);
          not_full_.NotifyOne();
          // Likewise, a consumer woken for the next cell while this one was still being filled.
          if (closed()) {
            not_empty_.NotifyAll();
          } else if (IsFull(head + 1)) {
            not_empty_.NotifyOne();
          }
          return item;
        }
      } else if (turn < full_turn) {
        return std::nullopt;  // not filled yet
      } else {
        head = head_.load(std::memory_order_acquire);
      }
    }
  }

  /// Sleeps while the channel is open and full (or empty), at most for `most`, so that the caller can do other work in
  /// between. Call TryPush (or TryPop) and closed() afterwards: another thread may have been faster.
  void AwaitRoom(std::chrono::milliseconds most) {
    Await(not_full_, most, [this] { return IsFree(tail_.load(std::memory_order_acquire)); });
  }
  void AwaitItem(std::chrono::milliseconds most) {
    Await(not_empty_, most, [this] { return IsFull(head_.load(std::memory_order_acquire)); });
  }

  /// Closes the channel: consumers get `status` after the last item. Wakes all waiting threads. Only the first call has
  /// an effect.
  void Close(Status status) {
    {
      const std::lock_guard lock(close_mutex_);
      if (closed()) return;
      status_ = std::move(status);
      tail_.fetch_or(kClosed, std::memory_order_seq_cst);
    }
    not_full_.NotifyAll();
    not_empty_.NotifyAll();
  }

  bool closed() const { return (tail_.load(std::memory_order_acquire) & kClosed) != 0; }
  size_t capacity() const { return capacity_; }
  /// Number of items; exact only without concurrent calls.
  size_t size() const {
    return static_cast<size_t>((tail_.load(std::memory_order_acquire) & ~kClosed) -
                               head_.load(std::memory_order_acquire));
  }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  /// turn 2n: free for lap n of the ring; 2n + 1: contains the item of lap n.
  struct Cell {
    std::atomic<uint64_t> turn{0};
    std::optional<T> item;
  };

  bool IsFree(uint64_t position) const {
    return cells_[position % capacity_].turn.load(std::memory_order_acquire) == 2 * (position / capacity_);
  }
  bool IsFull(uint64_t position) const {
    return cells_[position % capacity_].turn.load(std::memory_order_acquire) == 2 * (position / capacity_) + 1;
  }

  template <class Condition>
  void Await(EventCount& event, std::chrono::milliseconds most, const Condition& holds) {
    const uint32_t ticket = event.Prepare();
    if (holds() || closed()) {
      event.Cancel();
    } else {
      event.WaitAtMost(ticket, most);
    }
  }

  Status ClosedStatus() const { return status_.ok() ? Cancelled("the channel is closed") : status_; }

  Status PushSlowly(T& item, const std::stop_token& stop) {
    std::optional<std::stop_callback<WakeAll>> on_stop;
    for (;;) {
      const uint32_t ticket = not_full_.Prepare();
      const bool pushed = TryPush(item);
      const bool is_closed = !pushed && closed();
      const bool stopped = !pushed && !is_closed && stop.stop_requested();
      if (pushed || is_closed || stopped) {
        not_full_.Cancel();
        if (pushed) return Status::Ok();
        if (is_closed) return ClosedStatus();
        not_full_.NotifyOne();  // this thread may have consumed a wake-up meant for another
        return Cancelled("stopped while waiting for room in a channel");
      }
      if (!on_stop) {
        // Registered while counted as a waiter, so a stop in between advances the ticket.
        on_stop.emplace(stop, WakeAll{&not_full_});
      }
      not_full_.Wait(ticket);
    }
  }

  Result<std::optional<T>> PopSlowly(const std::stop_token& stop) {
    std::optional<std::stop_callback<WakeAll>> on_stop;
    for (;;) {
      const uint32_t ticket = not_empty_.Prepare();
      std::optional<T> item = TryPop();
      // Drained only if every claimed cell was taken: a producer that claimed its cell before Close may still fill it.
      const bool is_closed = !item && closed();
      if (is_closed && !drained()) item = TryPop();
      const bool at_end = is_closed && !item && drained();
      const bool stopped = !item && !at_end && stop.stop_requested();
      if (item || at_end || stopped) {
        not_empty_.Cancel();
        if (item) return item;
        if (!at_end) {
          not_empty_.NotifyOne();
          return Cancelled("stopped while waiting for an item of a channel");
        }
        not_empty_.NotifyAll();  // waiters that slept because a claimed cell was not filled yet
        if (!status_.ok()) return status_;
        return std::optional<T>();
      }
      if (!on_stop) on_stop.emplace(stop, WakeAll{&not_empty_});
      not_empty_.Wait(ticket);
    }
  }

  bool drained() const {
    return head_.load(std::memory_order_acquire) == (tail_.load(std::memory_order_acquire) & ~kClosed);
  }

  struct WakeAll {
    EventCount* event;
    void operator()() const { event->NotifyAll(); }
  };

  const size_t capacity_;
  const std::unique_ptr<Cell[]> cells_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) EventCount not_full_;
  EventCount not_empty_;
  std::mutex close_mutex_;
  Status status_;  ///< written once, before kClosed is set
};

}  // namespace millrace
