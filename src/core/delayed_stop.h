#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace millrace {

/// Requests a stop after a delay unless destroyed first; immediately if its thread cannot start.
class DelayedStop {
 public:
  DelayedStop(const std::stop_source& target, std::chrono::milliseconds delay) {
    try {
      thread_ = std::jthread([this, target = std::stop_source(target), delay](const std::stop_token& gone) mutable {
        std::unique_lock lock(mutex_);
        never_.wait_for(lock, gone, delay, [] { return false; });
        if (!gone.stop_requested()) target.request_stop();
      });
    } catch (const std::exception&) {
      std::stop_source(target).request_stop();
    }
  }
  DelayedStop(const DelayedStop&) = delete;
  DelayedStop& operator=(const DelayedStop&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread thread_;  // last member: uses those above
};

/// A stop request delayed after another one.
class GraceStop {
 public:
  GraceStop(const std::stop_token& stop, std::chrono::milliseconds delay)
      : on_stop_(stop, [this, delay] { delayed_.emplace(late_, delay); }) {}
  GraceStop(const GraceStop&) = delete;
  GraceStop& operator=(const GraceStop&) = delete;

  std::stop_token token() const { return late_.get_token(); }

 private:
  std::stop_source late_;
  std::optional<DelayedStop> delayed_;
  std::stop_callback<std::function<void()>> on_stop_;  // last member: uses those above
};

}  // namespace millrace
