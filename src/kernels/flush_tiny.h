#pragma once

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace millrace {

/// While alive, flushes this thread's subnormal floats (closer to 0 than 1.2e-38) to 0, as inputs and as results. Used
/// for updates: a moment without gradients decays to a subnormal and stays there, and arithmetic on it takes a hundred
/// times as long. No-op except on x86-64.
class FlushTiny {
 public:
#ifdef __x86_64__
  FlushTiny() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlush); }
  ~FlushTiny() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kFlush = 0x8040;  // of results, and of operands
  unsigned before_;

 public:
#else
  FlushTiny() {}
#endif
  FlushTiny(const FlushTiny&) = delete;
  FlushTiny& operator=(const FlushTiny&) = delete;
};

}  // namespace millrace
