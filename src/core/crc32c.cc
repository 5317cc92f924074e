#include "core/crc32c.h"

#include <isa-l.h>

#include <algorithm>

namespace millrace {

uint32_t Crc32c(uint32_t crc, const void* data, size_t size) {
  constexpr size_t kMost = size_t{1} << 30;  // ISA-L uses int
  // It only reads, despite the argument's type.
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(data));
  while (size > 0) {
    const size_t now = std::min(size, kMost);
    crc = ~crc32_iscsi(bytes, static_cast<int>(now), ~crc);
    bytes += now;
    size -= now;
  }
  return crc;
}

}  // namespace millrace
