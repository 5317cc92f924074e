#pragma once

#include <cstdint>

namespace millrace {

/// Counts calls of operator new (and aligned forms) on this thread while it lives. Link tests/allocation_counter.cc
/// into the test program: it replaces the global operators.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;
  /// Allocations since construction.
  int64_t count() const;

 private:
  int64_t before_;
};

}  // namespace millrace
