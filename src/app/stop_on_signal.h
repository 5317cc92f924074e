#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>

namespace millrace {

/// Turns the first SIGINT or SIGTERM into a stop request and lets the second end the process at once (130). So does
/// SIGHUP, unless it is ignored as under nohup; but a second one does not end the process, since a terminal that goes
/// away sends it several times, and service managers send it behind SIGTERM. SIGUSR1 is like SIGHUP: mpirun passes it
/// on to all ranks without a word about when they have to be gone, and schedulers send it ahead of a time limit.
///
/// A rank that mpirun is about to end, as after Ctrl-C there, gets SIGCONT from it first, and SIGTERM when half of its
/// time is over. Where `launcher_leaves` says how much time that is, a SIGCONT of the parent process asks for a stop as
/// well, so that the whole of it goes to the checkpoint, and one SIGTERM of the parent behind it says nothing new. A
/// SIGCONT within 5 s of when the process went on after it had been stopped is not taken for that: mpirun passes those
/// on, too. Without `launcher_leaves` SIGCONT does nothing.
///
/// One object a process, made before other threads, so that they inherit the blocked signals. Writing to a closed pipe
/// or beyond a limit then fails instead of ending the process.
class StopOnSignal {
 public:
  explicit StopOnSignal(std::optional<std::chrono::seconds> launcher_leaves = {});
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// Whether it is left to another rank to say that the run stops.
  void BeQuiet(bool is_quiet) { is_quiet_ = is_quiet; }

 private:
  void Wait();
  void Say(int signal) const;

  const std::optional<std::chrono::seconds> launcher_leaves_;
  std::stop_source source_;
  std::atomic<bool> is_quiet_{false};
  std::jthread waiter_;
};

}  // namespace millrace
