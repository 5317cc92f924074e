#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

/// Digit counts of the last float, usually equal to those of the next.
struct DigitGuess {
  uint32_t short_bytes = 5;
  uint32_t whole = 1;
  uint32_t part = 3;
};

/// Returns `actual` through a guess that is usually right: the CPU continues speculatively with the guess while it
/// still computes the number, on which all later work would otherwise wait. Without the barrier the compiler would
/// replace the guess by `actual`.
inline uint32_t Guessed(uint32_t actual, DigitGuess* guesses, uint32_t DigitGuess::*which) {
  uint32_t* const guess = &(guesses->*which);
  if (actual != *guess) [[unlikely]] {
    *guess = actual;
    asm volatile("" : "+r"(*guess));
  }
  return *guess;
}
inline uint32_t Guessed(uint32_t actual, std::nullptr_t /*guesses*/, uint32_t DigitGuess::* /*which*/) {
  return actual;
}

// Powers of ten that a float and a double represent exactly.
inline constexpr float kExactFloatPowers[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F};
inline constexpr double kExactPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// Reads "1.234" with at most six digits, which a float represents exactly, like the power of ten, so their quotient is
/// correctly rounded. `ends(at)` returns whether a number can end at that byte. Null: use ReadPlainDecimal.
template <class Ends>
const char* ReadShortPositive(const char* at, float* value, DigitGuess* guess, const Ends& ends) {
  const DecimalRun run = ReadShortDecimal(at);
  if (run.bytes == 0) return nullptr;
  at += Guessed(run.bytes, guess, &DigitGuess::short_bytes);
  if (!ends(at)) return nullptr;
  *value = static_cast<float>(static_cast<int32_t>(run.mantissa)) / kExactFloatPowers[run.after_point];
  return at;
}

/// Reads "-12.345" with at most seven digits on each side of the point, which a double represents exactly, like the
/// power of ten, so their quotient is rounded once. Its conversion to float rounds a second time; this equals a single
/// rounding unless the double is exactly halfway between two floats. Null `guess`: without one. Null: use ParseFloat.
template <class Real, class Guess, class Ends>
const char* ReadPlainDecimal(const char* at, Real* value, Guess guess, const Ends& ends) {
  const bool negative = *at == '-';
  if (negative) ++at;
  const DigitRun whole = ReadDigits(at);
  if (whole.digits == 0 || whole.digits == 8) return nullptr;
  at += Guessed(whole.digits, guess, &DigitGuess::whole);
  auto exact = static_cast<double>(whole.value);
  if (*at == '.') {
    const DigitRun part = ReadDigits(at + 1);
    if (part.digits == 8) return nullptr;
    const uint32_t digits = Guessed(part.digits, guess, &DigitGuess::part);
    at += 1 + digits;
    exact = static_cast<double>(whole.value * kPowersOfTen[digits] + part.value) / kExactPowers[digits];
  }
  if (!ends(at)) return nullptr;
  if constexpr (std::is_same_v<Real, float>) {
    constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1;
    if ((std::bit_cast<uint64_t>(exact) & kDropped) == (kDropped + 1) / 2) return nullptr;
  }
  *value = static_cast<Real>(negative ? -exact : exact);
  return at;
}

/// Reads a decimal with few digits and without exponent like ParseFloat, and returns the byte after it; null for
/// another format or if `ends(at)` is false at its end. Reads up to 24 bytes.
template <class Ends>
const char* ReadPlainFloat(const char* at, float* value, DigitGuess* guess, const Ends& ends) {
  const char* const next = ReadShortPositive(at, value, guess, ends);
  return next != nullptr ? next : ReadPlainDecimal(at, value, guess, ends);
}

}  // namespace millrace
