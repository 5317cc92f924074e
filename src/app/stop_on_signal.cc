#include "app/stop_on_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

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

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  if (!IsIgnored(SIGHUP)) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, kWakeUp);
  return set;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write, with a message
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter_ = std::jthread([this] { Wait(); });
}

StopOnSignal::~StopOnSignal() { pthread_kill(waiter_.native_handle(), kWakeUp); }

void StopOnSignal::Wait() {
  const sigset_t set = Signals();
  bool asked = false;  // by a signal that ends the process when it comes again
  while (true) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) return;
    if (signal == kWakeUp) return;
    const bool may_come_again = signal == SIGHUP || signal == SIGUSR1;
    if (!may_come_again && std::exchange(asked, true)) _exit(130);
    if (source_.stop_requested()) continue;
    if (!is_quiet_) std::fputs("\nstopping after the current batch; once more to stop at once\n", stderr);
    source_.request_stop();
  }
}

}  // namespace millrace
