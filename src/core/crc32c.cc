#include "core/crc32c.h"

#include <isa-l.h>

#include <algorithm>

namespace millrace {

uint32_t Crc32c(uint32_t crc, const void* data, size_t size) {
  constexpr size_t kMost = size_t{1} << 30;  // what ISA-L counts in an int
  // It only reads, though its argument says otherwise.
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
