#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/status.h"
#include "python/errors.h"
#include "session/quick_amount.h"

namespace millrace {

/// Where a thread ends whose process goes.
[[noreturn]] void StayForever();

/// Whether Python runs the handlers of signals on the calling thread, which has the GIL.
bool OnMainThread();

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

/// Runs `work` on a thread that is kept from call to call, while the caller, who holds the GIL and lets go of it
/// meanwhile, looks for Ctrl-C ten times a second. Then the token is asked to stop, the work is waited for, and
/// KeyboardInterrupt (whatever the signal's handler raised) goes on to Python. Signals are Python's main thread's;
/// another thread only waits. Calls may overlap.
void RunInterruptibly(const std::function<void(std::stop_token)>& work);

/// The same for work that can fail; its failure arrives as StatusError.
template <class T>
T RunInterruptibly(const std::function<Result<T>(std::stop_token)>& work) {
  std::optional<Result<T>> result;
  RunInterruptibly([&](std::stop_token stop) { result.emplace(work(std::move(stop))); });
  return ValueOrThrow(*std::move(result));
}

/// RunInterruptibly, or on the caller's thread without the GIL if `quick` expects this amount of work to be over before
/// anybody could press Ctrl-C. Such work must not wait for others.
void RunQuickly(QuickAmount* quick, int64_t amount, const std::function<void(std::stop_token)>& work);

/// Threads that were made for RunInterruptibly so far: as many as calls that ran at once, unless some were interrupted.
int64_t WorkersMade();

/// For Python's atexit: stops what daemon threads run by RunInterruptibly, and waits for it. They do not come back.
void StopCallsOfDaemons();

}  // namespace millrace
