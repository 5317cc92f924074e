#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "runtime/device.h"

namespace millrace {

/// Memory from one allocator that grows and never shrinks. One thread.
class Buffer {
 public:
  explicit Buffer(Allocator& allocator) : allocator_(&allocator) {}
  /// A moved-from buffer is empty and keeps its allocator.
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
  /// The memory as a shared reference: it stays valid while held, even if the buffer grows.
  const std::shared_ptr<void>& memory() const { return memory_; }

  /// Replaces the memory by at least `bytes` if it has less; the old content is lost. Returns false, changing nothing,
  /// if there is no memory.
  bool Reserve(size_t bytes);

 private:
  Allocator* allocator_;
  size_t capacity_ = 0;
  std::shared_ptr<void> memory_;
};

}  // namespace millrace
