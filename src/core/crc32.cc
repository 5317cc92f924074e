#include "core/crc32.h"

#include <zlib.h>

namespace millrace {

uint32_t Crc32(uint32_t crc, const void* data, size_t size) {
  return static_cast<uint32_t>(crc32_z(crc, static_cast<const Bytef*>(data), size));
}

}  // namespace millrace
