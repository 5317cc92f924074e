#pragma once

#include <cstdint>

#include "sanitized.h"

namespace millrace {

/// What a warm batch is not to do, counted on one thread since it started. What oneDNN does within its own code is
/// counted apart.
struct WarmCounts {
  int64_t allocations = 0;  ///< operator new and the malloc family
  int64_t locks = 0;        ///< pthread mutexes, read-write locks, condition variables
  int64_t futexes = 0;      ///< a sleep or a wake-up of std::atomic: of a Channel that is empty or full
  int64_t comparisons = 0;  ///< of strings: memcmp, strcmp. No name is looked up without one
  int64_t one_dnn_allocations = 0;
  int64_t one_dnn_locks = 0;

  WarmCounts operator-(const WarmCounts& before) const {
    return {allocations - before.allocations,
            locks - before.locks,
            futexes - before.futexes,
            comparisons - before.comparisons,
            one_dnn_allocations - before.one_dnn_allocations,
            one_dnn_locks - before.one_dnn_locks};
  }
};

/// The counts of the calling thread. Link tests/warm_counter.cc into the test program: it stands before the C library's
/// functions. Counts nothing under a sanitizer, which stands there itself (kCountsWarm).
WarmCounts WarmCountsNow();

inline constexpr bool kCountsWarm = !kIsSanitized;

}  // namespace millrace
