#pragma once

#include <cstdint>

namespace millrace {

inline constexpr int kMaxVarintSize = 10;

/// Writes seven bits per byte, low bits first, with the top bit set on all bytes but the last; at most kMaxVarintSize
/// bytes. Returns the end.
inline uint8_t* PutVarint(uint8_t* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

/// Reads a varint written by PutVarint. Returns the end.
inline const uint8_t* GetVarint(const uint8_t* in, uint64_t* value) {
  uint64_t result = *in & 0x7fU;
  for (int shift = 7; (*in++ & 0x80) != 0; shift += 7) result |= static_cast<uint64_t>(*in & 0x7f) << shift;
  *value = result;
  return in;
}

}  // namespace millrace
