#pragma once

#include <bit>
#include <cstdint>

#include "core/swar_digits.h"

namespace millrace {

/// Returns `actual` through a guess that is usually right: the CPU continues speculatively with the guess while it
/// still computes the number, on which all later work would otherwise wait. Without the barrier the compiler would
/// replace the guess by `actual`.
inline uint32_t Guessed(uint32_t actual, uint32_t* guess) {
  if (actual != *guess) [[unlikely]] {
    *guess = actual;
    asm volatile("" : "+r"(*guess));
  }
  return *guess;
}

/// Digit counts of the last float, usually equal to those of the next.
struct DigitGuess {
  uint32_t short_bytes = 5;
  uint32_t whole = 1;
  uint32_t part = 3;
};

// Powers of ten that a float and a double represent exactly.
inline constexpr float kExactFloatPowers[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F};
inline constexpr double kExactPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};

/// Reads "1.234" with at most six digits, which a float represents exactly, like the power of ten, so their quotient is
/// correctly rounded. `ends(at)` returns whether a number can end at that byte. Null: use ReadPlainDecimal.
template <class Ends>
const char* ReadShortPositive(const char* at, float* value, DigitGuess* guess, const Ends& ends) {
  const DecimalRun run = ReadShortDecimal(at);
  if (run.bytes == 0) return nullptr;
  at += Guessed(run.bytes, &guess->short_bytes);
  if (!ends(at)) return nullptr;
  *value = static_cast<float>(static_cast<int32_t>(run.mantissa)) / kExactFloatPowers[run.after_point];
  return at;
}

/// Reads "-12.345" with at most 14 digits. Null: use ParseFloat. The quotient of two exact doubles is rounded once and
/// its conversion to float a second time; this equals a single rounding unless the double is exactly halfway between
/// two floats.
template <class Ends>
const char* ReadPlainDecimal(const char* at, float* value, DigitGuess* guess, const Ends& ends) {
  const bool negative = *at == '-';
  if (negative) ++at;
  const DigitRun whole = ReadDigits(at);
  if (whole.digits == 0 || whole.digits == 8) return nullptr;
  at += Guessed(whole.digits, &guess->whole);
  uint64_t mantissa = whole.value;
  double scale = 1;
  if (*at == '.') {
    const DigitRun part = ReadDigits(at + 1);
    if (part.digits == 8) return nullptr;
    const uint32_t digits = Guessed(part.digits, &guess->part);
    at += 1 + digits;
    mantissa = mantissa * kPowersOfTen[digits] + part.value;
    scale = kExactPowers[digits];
  }
  if (!ends(at)) return nullptr;
  const double exact = static_cast<double>(mantissa) / scale;
  constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1;
  if ((std::bit_cast<uint64_t>(exact) & kDropped) == (kDropped + 1) / 2) return nullptr;
  const auto magnitude = static_cast<float>(exact);
  *value = negative ? -magnitude : magnitude;
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
