#include "runtime/buffer.h"

#include <algorithm>

namespace millrace {

bool Buffer::Reserve(size_t bytes) {
  if (memory_ != nullptr && bytes <= capacity_) return true;
  // Grow by half, so that slightly larger batches do not allocate each time.
  const Allocator::Block taken = allocator_->Allocate(std::max(bytes, capacity_ + capacity_ / 2) + 1);
  if (taken.data == nullptr) return false;
  memory_.reset(taken.data, [allocator = allocator_, taken](void*) { allocator->Free(taken); });
  capacity_ = taken.bytes;
  return true;
}

}  // namespace millrace
