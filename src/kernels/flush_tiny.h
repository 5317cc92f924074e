#pragma once

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace millrace {

/// Makes this thread's floats that are nearer to 0 than 1.2e-38 (subnormal ones) exactly 0 while it lives: those that
/// are read and those that come out. For updates: a moment without gradients shrinks to such a float and stays there,
/// and arithmetic with one takes a hundred times as long. On processors other than x86-64 it does nothing.
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
