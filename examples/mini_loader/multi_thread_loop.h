#pragma once

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace mini {

/// Runs the rounds of a loop in several threads, which wait for the next loop in between.
///
///     MultiThreadLoop loop(4);
///     loop(rows, [&](size_t i) { out[i] = 2 * in[i]; });
///
/// Rounds must not depend on each other and must not throw. The caller takes its share of them; a loop of few rounds is
/// run by the caller alone, as waking threads would cost more. One caller at a time.
class MultiThreadLoop {
 public:
  explicit MultiThreadLoop(int threads) : parts_(std::max(threads, 1)), start_(parts_), end_(parts_) {
    for (int part = 1; part < parts_; ++part) {
      threads_.emplace_back([this, part](const std::stop_token& stop) { Wait(part, stop); });
    }
  }
  ~MultiThreadLoop() {
    for (std::jthread& thread : threads_) thread.request_stop();
    if (!threads_.empty()) start_.arrive_and_wait();
  }
  MultiThreadLoop(const MultiThreadLoop&) = delete;
  MultiThreadLoop& operator=(const MultiThreadLoop&) = delete;

  void operator()(size_t count, const std::function<void(size_t i)>& callback) {
    if (threads_.empty() || count < kFew) {
      for (size_t i = 0; i < count; ++i) callback(i);
      return;
    }
    count_ = count;
    callback_ = &callback;
    start_.arrive_and_wait();
    RunPart(0);
    end_.arrive_and_wait();
  }

 private:
  static constexpr size_t kFew = 4096;

  void Wait(int part, const std::stop_token& stop) {
    for (;;) {
      start_.arrive_and_wait();
      if (stop.stop_requested()) return;
      RunPart(part);
      end_.arrive_and_wait();
    }
  }
  void RunPart(int part) const {
    const auto parts = static_cast<size_t>(parts_);
    const auto number = static_cast<size_t>(part);
    for (size_t i = count_ * number / parts; i < count_ * (number + 1) / parts; ++i) (*callback_)(i);
  }

  const std::ptrdiff_t parts_;
  std::barrier<> start_;
  std::barrier<> end_;
  size_t count_ = 0;
  const std::function<void(size_t)>* callback_ = nullptr;
  std::vector<std::jthread> threads_;  ///< last, so that they end before what they wait on
};

}  // namespace mini
