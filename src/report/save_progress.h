#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "report/progress_line.h"

namespace millrace {

/// What is written at a stop, and can be written by the run that goes on as well, is given up after so long: most
/// models are written by then.
inline constexpr std::chrono::milliseconds kMayTakeAtStop{250};

/// Shows how far a save or a load is: after a stop request twice a second, since whoever pressed Ctrl-C waits for it,
/// and before it only when it takes long, on a terminal each second, elsewhere now and then. A thread of its own shows
/// the line, so that it comes whatever the disk does meanwhile; where there is no thread to be had, nothing is shown.
/// Nobody else may write to `terminal`.
class SaveProgress {
 public:
  /// `what` goes on: "the checkpoint of step 7 is being written"; `total` bytes, about. While nobody asks to stop, a
  /// line comes each `now_and_then`.
  SaveProgress(std::string what, uint64_t total, std::stop_token stop, std::FILE* terminal,
               std::chrono::milliseconds now_and_then = std::chrono::seconds(10));
  ~SaveProgress();
  SaveProgress(const SaveProgress&) = delete;
  SaveProgress& operator=(const SaveProgress&) = delete;

  /// From whichever thread: so many are done.
  void Add(uint64_t bytes) { done_ += bytes; }
  /// So many more are to come than `total` says.
  void Expect(uint64_t bytes) { total_ += bytes; }

 private:
  void Show(const std::stop_token& gone);

  const std::string what_;
  std::atomic<uint64_t> total_;
  std::atomic<uint64_t> done_{0};
  const std::stop_token stop_;
  const std::chrono::milliseconds now_and_then_;
  ProgressLine line_;
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread thread_;  // the last one: it uses those above
};

}  // namespace millrace
