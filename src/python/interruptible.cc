#include "python/interruptible.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace py = pybind11;

namespace millrace {

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
  bool interrupted = false;
  while (!interrupted) {
    {
      const py::gil_scoped_release released;
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, kLook, [&] { return done; })) break;
    }
    interrupted = PyErr_CheckSignals() != 0;
  }
  if (interrupted) worker.request_stop();
  {
    const py::gil_scoped_release released;
    worker.join();
  }
  if (interrupted) throw py::error_already_set();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace millrace
