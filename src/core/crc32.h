#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// The CRC-32 of gzip and zlib of `size` bytes, continuing from `crc` (0 at the start). For external formats; ours use
/// Crc32c. Thread-safe.
uint32_t Crc32(uint32_t crc, const void* data, size_t size);

}  // namespace millrace
