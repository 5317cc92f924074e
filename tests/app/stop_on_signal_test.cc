#include "app/stop_on_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "process_tree.h"

namespace millrace {
namespace {

constexpr int kGoesOn = 10;
constexpr int kStops = 11;

/// A rank whose launcher is this process. It ends once the test has let go of it: with kStops where somebody asked for
/// a stop, and else with kGoesOn.
class Rank {
 public:
  explicit Rank(std::optional<std::chrono::seconds> launcher_leaves) {
    int ready[2];
    int end[2];
    if (pipe(ready) != 0 || pipe(end) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(end[1]);
      StopOnSignal signals(launcher_leaves);
      signals.BeQuiet(true);
      char byte = 0;
      (void)!write(ready[1], &byte, 1);
      (void)!read(end[0], &byte, 1);
      _exit(signals.token().stop_requested() ? kStops : kGoesOn);
    }
    close(ready[1]);
    close(end[0]);
    char byte = 0;
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
    end_ = end[1];
    WaitUntilIdle(pid_);  // until it waits for signals
  }
  ~Rank() {
    if (end_ >= 0) (void)Wait();
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// Returns once the rank has done what it does about the signal.
  void Signal(int signal) const {
    kill(pid_, signal);
    WaitUntilIdle(pid_);
  }
  void SignalOfAnother(int signal) const {
    ASSERT_EQ(std::system(("kill -" + std::to_string(signal) + " " + std::to_string(pid_)).c_str()), 0);
    WaitUntilIdle(pid_);
  }
  /// Its exit code.
  int Wait() {
    close(std::exchange(end_, -1));
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
};

TEST(StopOnSignal, CtrlCAtTheLauncherStopsARankAtItsFirstSignalAndTheSecondDoesNotEndIt) {
  Rank rank(std::chrono::seconds(2));
  rank.Signal(SIGCONT);
  rank.Signal(SIGTERM);
  EXPECT_EQ(rank.Wait(), kStops);
  Rank stopping(std::chrono::seconds(2));
  stopping.Signal(SIGCONT);
  EXPECT_EQ(stopping.Wait(), kStops);
}

TEST(StopOnSignal, CtrlCAtTheLauncherDoesNotCutTheCheckpointOfAStopThatWasAskedForBefore) {
  Rank rank(std::chrono::seconds(2));
  rank.SignalOfAnother(SIGTERM);
  rank.Signal(SIGCONT);
  rank.Signal(SIGTERM);
  EXPECT_EQ(rank.Wait(), kStops);
}

TEST(StopOnSignal, AUserEndsARankAtOnceThatItsLauncherEnds) {
  Rank rank(std::chrono::seconds(2));
  rank.Signal(SIGCONT);
  rank.Signal(SIGTERM);
  rank.SignalOfAnother(SIGTERM);
  EXPECT_EQ(rank.Wait(), 130);
}

TEST(StopOnSignal, ARankThatWasSuspendedGoesOn) {
  Rank rank(std::chrono::seconds(2));
  rank.Signal(SIGSTOP);
  rank.Signal(SIGCONT);
  rank.Signal(SIGCONT);  // the launcher passes on what it gets itself
  EXPECT_EQ(rank.Wait(), kGoesOn);
}

TEST(StopOnSignal, OnlyTheLauncherEndsARankBySigcont) {
  Rank rank(std::chrono::seconds(2));
  rank.SignalOfAnother(SIGCONT);
  EXPECT_EQ(rank.Wait(), kGoesOn);
  Rank no_rank({});
  no_rank.Signal(SIGCONT);
  EXPECT_EQ(no_rank.Wait(), kGoesOn);
}

}  // namespace
}  // namespace millrace
