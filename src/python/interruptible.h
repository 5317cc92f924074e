#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/status.h"
#include "python/errors.h"

namespace millrace {

/// Where a thread ends whose process goes.
[[noreturn]] void StayForever();

/// Runs `work` without the GIL; what it throws goes on with the GIL. A thread that Python's end overtakes meanwhile (a
/// daemon's) stays here until the process is gone: Python would end it by unwinding, which destructors do not stand.
template <class Work>
void WithoutGil(const Work& work) {
  PyThreadState* const state = PyEval_SaveThread();
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  if (Py_IsInitialized() == 0) StayForever();
  PyEval_RestoreThread(state);
  if (failure) std::rethrow_exception(failure);
}

/// Runs `work` on a thread of its own while the caller, who holds the GIL and lets go of it meanwhile, looks for Ctrl-C
/// ten times a second. Then the token is asked to stop, the work is waited for, and KeyboardInterrupt (whatever the
/// signal's handler raised) goes on to Python. Signals are Python's main thread's; another thread only waits.
void RunInterruptibly(const std::function<void(std::stop_token)>& work);

/// The same for work that can fail; its failure arrives as StatusError.
template <class T>
T RunInterruptibly(const std::function<Result<T>(std::stop_token)>& work) {
  std::optional<Result<T>> result;
  RunInterruptibly([&](std::stop_token stop) { result.emplace(work(std::move(stop))); });
  return ValueOrThrow(*std::move(result));
}

/// For Python's atexit: stops what daemon threads run by RunInterruptibly, and waits for it. They do not come back.
void StopCallsOfDaemons();

}  // namespace millrace
