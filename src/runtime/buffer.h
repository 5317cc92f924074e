#pragma once

#include <cstddef>
#include <utility>

#include "runtime/device.h"

namespace millrace {

/// Owns memory of one allocator, which grows and never shrinks. One thread.
class Buffer {
 public:
  explicit Buffer(Allocator& allocator) : allocator_(&allocator) {}
  ~Buffer() { Free(); }
  /// What is moved from has nothing, and the same allocator.
  Buffer(Buffer&& other) noexcept : allocator_(other.allocator_), block_(std::exchange(other.block_, {})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    Free();
    allocator_ = other.allocator_;
    block_ = std::exchange(other.block_, {});
    return *this;
  }

  Allocator& allocator() const { return *allocator_; }
  void* data() const { return block_.data; }
  size_t capacity() const { return block_.bytes; }

  /// Takes at least `bytes` anew when there are fewer; what the old memory held is lost. False, with everything as it
  /// was, when there is no memory.
  bool Reserve(size_t bytes);

 private:
  void Free() {
    if (block_.data != nullptr) allocator_->Free(block_);
  }

  Allocator* allocator_;
  Allocator::Block block_;
};

}  // namespace millrace
