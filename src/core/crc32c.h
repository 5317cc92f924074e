#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// CRC-32C (Castagnoli) of `size` bytes, continuing from `crc` (0 at the start): Crc32c(Crc32c(0, a), b) is that of ab.
/// Computed by ISA-L with the available CPU instructions. Thread-safe.
uint32_t Crc32c(uint32_t crc, const void* data, size_t size);

}  // namespace millrace
