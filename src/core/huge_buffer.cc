#include "core/huge_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace millrace {

HugeBuffer::HugeBuffer(size_t bytes, Pages pages) {
  if (bytes == 0) return;
  const bool huge = bytes >= kHugePage;
  const size_t page = huge ? kHugePage : 4096;
  bytes_ = (bytes + page - 1) / page * page;
  // mmap aligns only to small pages, so map one huge page more and unmap the ends. The kept part is as high as
  // possible, below earlier mappings, because the kernel merges such neighbors into one mapping and allows only 65,530.
  const size_t mapped = huge ? bytes_ + kHugePage : bytes_;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* start = static_cast<std::byte*>(memory);
  if (huge) {
    const size_t behind = reinterpret_cast<uintptr_t>(start + mapped) % kHugePage;
    const size_t before = mapped - behind - bytes_;
    if (behind > 0) munmap(start + mapped - behind, behind);
    if (before > 0) munmap(start, before);
    start += before;
    madvise(start, bytes_, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // a hint: both work
  }
  data_ = start;
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace millrace
