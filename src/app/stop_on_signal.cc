#include "app/stop_on_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace millrace {
namespace {

// SIGUSR2 from our own destructor ends the wait.
constexpr int kWakeUp = SIGUSR2;

bool IsIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t Signals(bool of_launcher) {
  sigset_t set;
  sigemptyset(&set);
  if (!IsIgnored(SIGHUP)) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  if (of_launcher) sigaddset(&set, SIGCONT);
  sigaddset(&set, kWakeUp);
  return set;
}

}  // namespace

StopOnSignal::StopOnSignal(std::optional<std::chrono::seconds> launcher_leaves) : launcher_leaves_(launcher_leaves) {
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write, with a message
  const sigset_t set = Signals(launcher_leaves_.has_value());
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter_ = std::jthread([this] { Wait(); });
}

StopOnSignal::~StopOnSignal() { pthread_kill(waiter_.native_handle(), kWakeUp); }

void StopOnSignal::Wait() {
  using Clock = std::chrono::steady_clock;
  // The hosts of a run that was suspended do not go on in the same moment.
  constexpr std::chrono::seconds kGoingOn{5};
  // A launcher ends all ranks, too, for the mistake of which they end by themselves: nobody has stopped these.
  constexpr timespec kMoment{.tv_sec = 0, .tv_nsec = 300'000'000};
  const sigset_t set = Signals(launcher_leaves_.has_value());
  bool has_to_say = false;                   // that SIGCONT stops the run
  bool asked = false;                        // by a signal that ends the process when it comes again
  bool launcher_ends = false;                // its SIGCONT was here, its SIGTERM is to come
  std::optional<Clock::time_point> went_on;  // after the process had been stopped
  while (true) {
    siginfo_t info{};
    const int signal = has_to_say ? sigtimedwait(&set, &info, &kMoment) : sigwaitinfo(&set, &info);
    if (std::exchange(has_to_say, false) && signal != kWakeUp) Say(SIGCONT);
    if (signal < 0 && errno == EAGAIN) continue;
    if (signal < 0) {
      if (errno != EINTR) return;
      went_on = Clock::now();  // Linux ends the wait of a process that was stopped once it goes on
      continue;
    }
    if (signal == kWakeUp) return;
    const bool is_of_parent = info.si_code == SI_USER && info.si_pid == getppid();
    if (signal == SIGCONT) {
      if (!is_of_parent || (went_on.has_value() && Clock::now() - *went_on < kGoingOn)) continue;
      launcher_ends = true;
    }
    const bool says_nothing_new = signal == SIGTERM && is_of_parent && std::exchange(launcher_ends, false);
    const bool may_come_again = signal == SIGHUP || signal == SIGUSR1 || signal == SIGCONT;
    if (!may_come_again && std::exchange(asked, true) && !says_nothing_new) _exit(130);
    if (source_.stop_requested()) continue;
    has_to_say = !is_quiet_ && signal == SIGCONT;
    if (!is_quiet_ && !has_to_say) Say(signal);
    source_.request_stop();
  }
}

void StopOnSignal::Say(int signal) const {
  if (signal != SIGCONT) {
    // Those that may come again stop nothing at once.
    const bool may_come_again = signal == SIGHUP || signal == SIGUSR1;
    std::fprintf(stderr, "\nstopping after the current batch; %s to stop at once\n",
                 may_come_again ? "SIGINT or SIGTERM twice" : "once more");
    return;
  }
  // It sends the same for both, and who was lost on another host is not seen from here.
  std::fprintf(
      stderr,
      "\nmpirun ends the run, as it was asked to, or as a rank failed or was lost, which is named: stopping after the "
      "current batch; mpirun leaves the ranks some %lld s for it and for a checkpoint: "
      "twice its --mca odls_base_sigkill_timeout. kill -USR1 of mpirun sets no limit\n",
      static_cast<long long>(launcher_leaves_->count()));
}

}  // namespace millrace
