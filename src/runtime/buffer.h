#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "runtime/device.h"

namespace millrace {

/// Memory of one allocator, which grows and never shrinks. One thread.
class Buffer {
 public:
  explicit Buffer(Allocator& allocator) : allocator_(&allocator) {}
  /// What is moved from has nothing, and the same allocator.
  Buffer(Buffer&& other) noexcept
      : allocator_(other.allocator_), capacity_(std::exchange(other.capacity_, 0)), memory_(std::move(other.memory_)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    allocator_ = other.allocator_;
    capacity_ = std::exchange(other.capacity_, 0);
    memory_ = std::move(other.memory_);
    return *this;
  }

  Allocator& allocator() const { return *allocator_; }
  void* data() const { return memory_.get(); }
  size_t capacity() const { return capacity_; }
  /// The same memory, for whoever shows it: it stays as long as they hold it, also when the buffer grows.
  const std::shared_ptr<void>& memory() const { return memory_; }

  /// Takes at least `bytes` anew when there are fewer; what the old memory held is lost to the buffer. False, with
  /// everything as it was, when there is no memory.
  bool Reserve(size_t bytes);

 private:
  Allocator* allocator_;
  size_t capacity_ = 0;
  std::shared_ptr<void> memory_;
};

}  // namespace millrace
