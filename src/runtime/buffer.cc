#include "runtime/buffer.h"

#include <algorithm>

namespace millrace {

bool Buffer::Reserve(size_t bytes) {
  if (block_.data != nullptr && bytes <= block_.bytes) return true;
  // Half as much again, so that a batch a little larger than the last one does not allocate each time.
  const Allocator::Block taken = allocator_->Allocate(std::max(bytes, block_.bytes + block_.bytes / 2) + 1);
  if (taken.data == nullptr) return false;
  Free();
  block_ = taken;
  return true;
}

}  // namespace millrace
