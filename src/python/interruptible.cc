#include "python/interruptible.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "python/output.h"

namespace py = pybind11;

namespace millrace {
namespace {

struct PythonsEnd;
PythonsEnd& End();

/// Of the process, as Python's end is: calls that run, and whether they are to stop for good.
struct PythonsEnd {
  // The threads of a process are not in the one that it forks.
  PythonsEnd() {
    ::pthread_atfork(nullptr, nullptr, [] { End().calls = 0; });
  }

  std::atomic<int> calls{0};
  std::atomic<bool> is_near{false};
};

PythonsEnd& End() {
  static PythonsEnd end;
  return end;
}

}  // namespace

void RunInterruptibly(const std::function<void(std::stop_token)>& work) {
  constexpr std::chrono::milliseconds kLook{100};
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr failure;
  std::jthread worker([&](const std::stop_token& stop) {
    try {
      work(stop);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  ++End().calls;
  bool interrupted = false;
  while (!interrupted) {
    bool is_done = false;
    WithoutGil([&] {
      {
        std::unique_lock lock(mutex);
        is_done = changed.wait_for(lock, kLook, [&] { return done; });
      }
      if (!End().is_near && Py_IsInitialized() != 0) return;
      // Nobody will take the result, and nothing may run on while the process goes.
      worker.request_stop();
      worker.join();
      --End().calls;
      StayForever();
    });
    DeliverWords();
    if (is_done) break;
    interrupted = PyErr_CheckSignals() != 0;
  }
  if (interrupted) worker.request_stop();
  WithoutGil([&] { worker.join(); });
  --End().calls;
  DeliverWords();
  if (interrupted) throw py::error_already_set();
  if (failure) std::rethrow_exception(failure);
}

void StopCallsOfDaemons() {
  constexpr std::chrono::seconds kMost{5};
  constexpr std::chrono::milliseconds kLook{5};
  End().is_near = true;
  WithoutGil([&] {
    const auto end = std::chrono::steady_clock::now() + kMost;
    while (End().calls > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kLook);
  });
  // What other functions of atexit call is none of a daemon's.
  End().is_near = false;
  DeliverWords();
}

void StayForever() {
  for (;;) pause();
}

}  // namespace millrace
