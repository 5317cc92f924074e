#include "core/huge_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace millrace {

HugeBuffer::HugeBuffer(size_t bytes) {
  if (bytes == 0) return;
  const bool huge = bytes >= kHugePage;
  const size_t page = huge ? kHugePage : 4096;
  bytes_ = (bytes + page - 1) / page * page;
  // mmap aligns to small pages only: take one huge page more and give the ends back.
  const size_t mapped = huge ? bytes_ + kHugePage : bytes_;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* start = static_cast<std::byte*>(memory);
  if (huge) {
    const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
    if (before > 0) munmap(start, before);
    start += before;
    if (mapped - before > bytes_) munmap(start + bytes_, mapped - before - bytes_);
    madvise(start, bytes_, MADV_HUGEPAGE);  // a wish: small pages work as well
  }
  data_ = start;
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace millrace
