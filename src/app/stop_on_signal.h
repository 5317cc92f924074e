#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace millrace {

/// Turns the first SIGINT or SIGTERM into a stop request and lets the second end the process at once (130). So does
/// SIGHUP, unless it is ignored as under nohup; but a second one does not end the process, since a terminal that goes
/// away sends it several times, and service managers send it behind SIGTERM. SIGUSR1 is like SIGHUP: mpirun passes it
/// on to all ranks without a word about when they have to be gone, and schedulers send it ahead of a time limit. One
/// object a process, made before other threads, so that they inherit the blocked signals. Writing to a closed pipe or
/// beyond a limit then fails instead of ending the process.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// Leaves it to another rank to say that the run stops.
  void BeQuiet() { is_quiet_ = true; }

 private:
  void Wait();

  std::stop_source source_;
  std::atomic<bool> is_quiet_{false};
  std::jthread waiter_;
};

}  // namespace millrace
