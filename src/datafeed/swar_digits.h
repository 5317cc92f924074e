#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace millrace {

static_assert(std::endian::native == std::endian::little, "the digit tricks read little-endian words");

/// Up to eight decimal digits at `text`, of which eight bytes may be read.
struct DigitRun {
  uint64_t value = 0;
  uint32_t digits = 0;  ///< 0 to 8; 8 may go on
};

/// Reads eight bytes as one word, finds where its digits end, and turns them into a number with three multiplications
/// and no loop (Mula and Lemire's way of parsing eight digits, here for 0 to 8 of them).
inline DigitRun ReadDigits(const char* text) {
  uint64_t word = 0;
  std::memcpy(&word, text, sizeof(word));
  const uint64_t low = word ^ 0x3030303030303030U;
  // A byte is a digit when its high nibble is 0 now and stays 0 after adding 6. A carry can only reach bytes after one
  // that is not a digit, and only the first such byte counts.
  const uint64_t others = ((low + 0x0606060606060606U) | low) & 0xf0f0f0f0f0f0f0f0U;
  const auto digits = others == 0 ? 8U : static_cast<uint32_t>(std::countr_zero(others)) / 8U;
  if (digits == 0) return {};
  uint64_t v = low << (64 - 8 * digits);  // leading zeros come in from below
  v = v * 10 + (v >> 8);
  constexpr uint64_t kPairs = 0x000000ff000000ffU;
  v = ((v & kPairs) * 0x000f424000000064U + ((v >> 16) & kPairs) * 0x0000271000000001U) >> 32;
  return {v, digits};
}

inline constexpr uint64_t kPowersOfTen[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/// Reads an unsigned 64-bit integer of at most 20 digits without a sign; 24 bytes may be read. Returns the byte after
/// it, or null when there is no digit, or more digits or more than 2^64 - 1.
inline const char* ReadUint64(const char* text, uint64_t* value) {
  DigitRun run = ReadDigits(text);
  if (run.digits < 8) [[likely]] {
    *value = run.value;
    return run.digits == 0 ? nullptr : text + run.digits;
  }
  uint64_t total = run.value;
  run = ReadDigits(text + 8);
  total = total * kPowersOfTen[run.digits] + run.value;
  if (run.digits < 8) {
    *value = total;
    return text + 8 + run.digits;
  }
  run = ReadDigits(text + 16);
  if (run.digits > 4 || __builtin_mul_overflow(total, kPowersOfTen[run.digits], &total) ||
      __builtin_add_overflow(total, run.value, &total)) {
    return nullptr;
  }
  *value = total;
  return text + 16 + run.digits;
}

}  // namespace millrace
