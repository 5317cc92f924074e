// A time of day that steps, forward and back, from call to call: LD_PRELOAD of the hostile campaign. Monotonic clocks
// stay as they are, as they do when somebody sets the clock.

#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#include <atomic>

namespace {

/// Seconds to add at the next call.
time_t Step() {
  static std::atomic<unsigned> calls{0};
  constexpr time_t kSteps[] = {0, 3600, -86400, 0, 31536000, -31536000, 1, -1};
  return kSteps[calls.fetch_add(1, std::memory_order_relaxed) % 8];
}

int Now(clockid_t clock, timespec* now) {
  using ClockGettime = int (*)(clockid_t, timespec*);
  static const auto next = reinterpret_cast<ClockGettime>(dlsym(RTLD_NEXT, "clock_gettime"));
  return next(clock, now);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int failed = Now(clock, now);
  if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += Step();
  return failed;
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  timespec precise;
  const int failed = clock_gettime(CLOCK_REALTIME, &precise);
  if (failed == 0) *now = {precise.tv_sec, precise.tv_nsec / 1000};
  return failed;
}

time_t time(time_t* now) noexcept {
  timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}

}  // extern "C"
