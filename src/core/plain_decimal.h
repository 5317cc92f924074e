#pragma once

#include <bit>
#include <cstdint>

#include "core/swar_digits.h"

namespace millrace {

/// Returns `actual`, but by way of a guess that is right most of the time: the processor goes on with the guess while
/// it still works out the number, where otherwise all that follows would wait for it. Without the barrier the compiler
/// would see that the guess always ends as `actual`, and use that.
inline uint32_t Guessed(uint32_t actual, uint32_t* guess) {
  if (actual != *guess) [[unlikely]] {
    *guess = actual;
    asm volatile("" : "+r"(*guess));
  }
  return *guess;
}

/// Numbers of digits of the last float, which the next one mostly has, too.
struct DigitGuess {
  uint32_t short_bytes = 5;
  uint32_t whole = 1;
  uint32_t part = 3;
};

// Powers of ten that a float and a double hold exactly.
inline constexpr float kExactFloatPowers[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F};
inline constexpr double kExactPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};

/// Reads "1.234" of at most six digits, which a float holds exactly, as it does the power of ten: their quotient is
/// rounded once, as it should be. `ends(at)` says whether a number may end at that byte. Null: leave it to
/// ReadPlainDecimal.
template <class Ends>
const char* ReadShortPositive(const char* at, float* value, DigitGuess* guess, const Ends& ends) {
  const DecimalRun run = ReadShortDecimal(at);
  if (run.bytes == 0) return nullptr;
  at += Guessed(run.bytes, &guess->short_bytes);
  if (!ends(at)) return nullptr;
  *value = static_cast<float>(static_cast<int32_t>(run.mantissa)) / kExactFloatPowers[run.after_point];
  return at;
}

/// Reads "-12.345" of at most 14 digits. Null: leave it to ParseFloat. The quotient of two exact doubles is rounded
/// once, the float of it a second time; that is the same as rounding once unless the double lies in the very middle
/// between two floats.
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

/// Reads a decimal of few digits and without exponent as ParseFloat would, and returns the byte behind it; null when it
/// is written in another way, or `ends(at)` is false where it ends. 24 bytes may be read.
template <class Ends>
const char* ReadPlainFloat(const char* at, float* value, DigitGuess* guess, const Ends& ends) {
  const char* const next = ReadShortPositive(at, value, guess, ends);
  return next != nullptr ? next : ReadPlainDecimal(at, value, guess, ends);
}

}  // namespace millrace
