#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace millrace {

/// Allocates like std::allocator but leaves new elements uninitialized, so resize() does not touch memory that will be
/// overwritten anyway.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
  using std::allocator<T>::allocator;
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};

/// A vector of numbers whose resize() does not write. Assign elements before reading them.
template <class T>
using UninitializedVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace millrace
