#include "python/interruptible.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "python/output.h"

// Of libgomp, which oneDNN brings along; its header needs the compiler's OpenMP mode.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int);

namespace py = pybind11;

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

/// A thread that works for others, one call at a time.
class Worker {
 public:
  Worker() : thread_([this] { Serve(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }

  /// `work` must not throw, and stays until IsDoneWithin said true or the worker is gone.
  void Begin(const std::function<void()>& work) {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    changed_.notify_all();
  }
  bool IsDoneWithin(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return work_ == nullptr; });
  }

 private:
  void Serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return work_ != nullptr || is_ending_; });
      if (work_ == nullptr) return;
      lock.unlock();
      (*work_)();
      lock.lock();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  bool is_ending_ = false;
  std::jthread thread_;
};

struct Process;
Process& OfProcess();

/// What calls of this process share.
struct Process {
  // The threads of a process are not in the one that it forks.
  Process() {
    ::pthread_atfork(nullptr, nullptr, [] {
      Process& forked = OfProcess();
      forked.calls = 0;
      forked.main_thread = 0;
      for (std::unique_ptr<Worker>& worker : forked.idle) (void)worker.release();
      forked.idle.clear();
    });
  }

  std::atomic<int> calls{0};  ///< that run
  std::atomic<int64_t> workers_made{0};
  std::atomic<bool> is_near{false};           ///< Python's end: calls that run are to stop for good
  std::vector<std::unique_ptr<Worker>> idle;  ///< for the next calls; under the GIL
  unsigned long main_thread = 0;              ///< 0: not known yet; under the GIL
};

Process& OfProcess() {
  static Process process;
  return process;
}

/// Leaves the caller's OpenMP as it was: oneDNN is told to use one thread, and numpy's or torch's calls may have more.
class SameOpenMp {
 public:
  SameOpenMp() : threads_(omp_get_max_threads()) {}
  ~SameOpenMp() {
    if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  }
  SameOpenMp(const SameOpenMp&) = delete;
  SameOpenMp& operator=(const SameOpenMp&) = delete;

 private:
  int threads_;
};

void RunHere(const std::function<void(std::stop_token)>& work) {
  Process& process = OfProcess();
  ++process.calls;
  std::exception_ptr failure;
  WithoutGil([&] {
    try {
      const SameOpenMp same;
      work(std::stop_token());
    } catch (...) {
      failure = std::current_exception();
    }
    --process.calls;
    if (process.is_near) StayForever();  // nobody will take the result
  });
  DeliverWords();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

bool OnMainThread() {
  Process& process = OfProcess();
  if (process.main_thread == 0) {
    process.main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  }
  return process.main_thread == PyThread_get_thread_ident();
}

void RunInterruptibly(const std::function<void(std::stop_token)>& work) {
  constexpr std::chrono::milliseconds kLook{100};
  constexpr size_t kKept = 8;
  Process& process = OfProcess();
  std::unique_ptr<Worker> worker;
  if (process.idle.empty()) {
    worker = std::make_unique<Worker>();
    ++process.workers_made;
  } else {
    worker = std::move(process.idle.back());
    process.idle.pop_back();
  }
  std::stop_source stop;
  std::exception_ptr failure;
  const std::function<void()> whole = [&] {
    try {
      work(stop.get_token());
    } catch (...) {
      failure = std::current_exception();
    }
  };
  ++process.calls;
  worker->Begin(whole);
  bool interrupted = false;
  for (bool is_done = false; !is_done && !interrupted;) {
    WithoutGil([&] {
      is_done = worker->IsDoneWithin(kLook);
      if (!process.is_near && Py_IsInitialized() != 0) return;
      // Nobody will take the result, and nothing may run on while the process goes.
      stop.request_stop();
      worker.reset();
      --process.calls;
      StayForever();
    });
    DeliverWords();
    if (!is_done) interrupted = PyErr_CheckSignals() != 0;
  }
  if (interrupted) {
    stop.request_stop();
    WithoutGil([&] { worker.reset(); });
  }
  --process.calls;
  DeliverWords();
  if (worker != nullptr && process.idle.size() < kKept) process.idle.push_back(std::move(worker));
  if (interrupted) throw py::error_already_set();
  if (failure) std::rethrow_exception(failure);
}

void RunQuickly(QuickAmount* quick, int64_t amount, const std::function<void(std::stop_token)>& work) {
  const Clock::time_point start = Clock::now();
  if (quick->Contains(amount)) {
    RunHere(work);
  } else {
    RunInterruptibly(work);
  }
  quick->Note(amount, Clock::now() - start);
}

int64_t WorkersMade() { return OfProcess().workers_made; }

void StopCallsOfDaemons() {
  constexpr std::chrono::seconds kMost{5};
  constexpr std::chrono::milliseconds kLook{5};
  Process& process = OfProcess();
  process.is_near = true;
  process.idle.clear();
  WithoutGil([&] {
    const auto end = Clock::now() + kMost;
    while (process.calls > 0 && Clock::now() < end) std::this_thread::sleep_for(kLook);
  });
  // What other functions of atexit call is none of a daemon's.
  process.is_near = false;
  DeliverWords();
}

void StayForever() {
  for (;;) pause();
}

}  // namespace millrace
