#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace millrace {

/// Allocates as std::allocator, but leaves new elements as they are when none is given to copy: resize() then costs
/// no pass over memory that is about to be written anyway.
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

/// A vector of numbers whose resize() does not write. Elements must be assigned before they are read.
template <class T>
using UninitializedVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace millrace
