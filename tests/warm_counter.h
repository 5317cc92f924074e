#pragma once

#include <cstdint>

namespace millrace {

/// What a warm batch is not to do, counted on one thread since it started.
struct WarmCounts {
  int64_t allocations = 0;          ///< operator new and the malloc family, by our code and what it calls
  int64_t library_allocations = 0;  ///< the same within oneDNN
  int64_t locks = 0;                ///< pthread mutexes, read-write locks, condition variables
  int64_t futexes = 0;              ///< a sleep or a wake-up of std::atomic: of a Channel that is empty or full
  int64_t comparisons = 0;          ///< of strings: memcmp, strcmp. No name is looked up without one

  WarmCounts operator-(const WarmCounts& before) const {
    return {allocations - before.allocations, library_allocations - before.library_allocations, locks - before.locks,
            futexes - before.futexes, comparisons - before.comparisons};
  }
};

/// The counts of the calling thread. Link tests/warm_counter.cc into the test program: it stands before the C library's
/// functions. Counts nothing under a sanitizer, which stands there itself (kCountsWarm).
WarmCounts WarmCountsNow();

#ifdef MILLRACE_SANITIZED
inline constexpr bool kCountsWarm = false;
#else
inline constexpr bool kCountsWarm = true;
#endif

}  // namespace millrace
