#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace millrace {

static_assert(std::endian::native == std::endian::little, "the digit tricks read little-endian words");

/// Up to eight decimal digits at `text`; eight bytes are readable.
struct DigitRun {
  uint64_t value = 0;
  uint32_t digits = 0;  ///< 0 to 8; after 8, more can follow
};

/// Digits, a point and more digits at `text`, within eight bytes of which the last is another character.
struct DecimalRun {
  uint32_t mantissa = 0;     ///< all digits as one number, below 10^6
  uint32_t after_point = 0;  ///< digits after the point
  uint32_t bytes = 0;        ///< 0: no such number
};

/// Loads eight bytes of text as one word, the first byte lowest.
inline uint64_t LoadWord(const char* text) {
  uint64_t word = 0;
  std::memcpy(&word, text, sizeof(word));
  return word;
}

/// A bit in each byte of a word where digits may end. Later work waits only for this position, so it is found in the
/// fewest steps: digits have bit 0x10; white space, point, sign and 'e' do not. Other characters have it too and are
/// detected in parallel.
inline uint64_t DigitEnds(uint64_t word) { return ~word & 0x1010101010101010U; }

/// Converts the lowest `count` bytes of `text`, 1 to 8, the first byte lowest, to a number with three multiplications
/// and no loop (Mula and Lemire's method for eight digits). False unless all are digits.
inline bool NumberOfDigits(uint64_t text, uint32_t count, uint64_t* number) {
  const uint64_t digits = (text ^ 0x3030303030303030U) << (64 - 8 * count);  // leading zeros come in from below
  // A byte is a digit if its high nibble is 0 now and stays 0 after adding 6. A carry only reaches bytes after a
  // non-digit.
  const uint64_t others = ((digits + 0x0606060606060606U) | digits) & 0xf0f0f0f0f0f0f0f0U;
  const uint64_t pairs = digits * 10 + (digits >> 8);
  constexpr uint64_t kPairs = 0x000000ff000000ffU;
  *number = ((pairs & kPairs) * 0x000f424000000064U + ((pairs >> 16) & kPairs) * 0x0000271000000001U) >> 32;
  return others == 0;
}

/// Reads up to eight digits. Returns none if a byte before the next white space, point, sign or 'e' is not a digit.
inline DigitRun ReadDigits(const char* text) {
  const uint64_t word = LoadWord(text);
  const uint64_t ends = DigitEnds(word);
  const uint32_t digits = ends == 0 ? 8U : static_cast<uint32_t>(std::countr_zero(ends)) / 8U;
  uint64_t value = 0;
  if (digits == 0 || !NumberOfDigits(word, digits, &value)) return {};
  return {value, digits};
}

/// Reads "12.345" by removing the point from the word.
inline DecimalRun ReadShortDecimal(const char* text) {
  const uint64_t word = LoadWord(text);
  const uint64_t ends = DigitEnds(word);
  const uint64_t later_ends = ends & (ends - 1);
  if (later_ends == 0) return {};
  const auto whole = static_cast<uint32_t>(std::countr_zero(ends)) / 8U;
  const auto bytes = static_cast<uint32_t>(std::countr_zero(later_ends)) / 8U;
  if (whole == 0 || text[whole] != '.') return {};
  const uint64_t before_point = (uint64_t{1} << (8 * whole)) - 1;
  const uint64_t digits = (word & before_point) | ((word >> 8) & ~before_point);
  uint64_t mantissa = 0;
  if (!NumberOfDigits(digits, bytes - 1, &mantissa)) return {};
  return {static_cast<uint32_t>(mantissa), bytes - 1 - whole, bytes};
}

inline constexpr uint64_t kPowersOfTen[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/// Reads an unsigned 64-bit integer of at most 20 digits without a sign; 24 bytes are readable. Returns the byte after
/// it, or null without digits or if it is too large.
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
