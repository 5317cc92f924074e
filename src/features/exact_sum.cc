#include "features/exact_sum.h"

#include <cmath>

namespace millrace {
namespace {

constexpr uint64_t kDigit = 0xffffffffU;

}  // namespace

void ExactSum::Add(double number) { AddTerm(number); }

void ExactSum::AddSquare(double number) {
  // Numbers beyond these have squares that a double does not hold; nobody standardizes such.
  constexpr double kMost = 1e150;
  number = number > kMost ? kMost : number < -kMost ? -kMost : number;
  const double square = number * number;
  AddTerm(square);
  AddTerm(std::fma(number, number, -square));
}

void ExactSum::AddTerm(double number) {
  if (number == 0) return;
  int exponent = 0;
  const double fraction = std::frexp(number, &exponent);  // 0.5 to 1
  const auto mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
  const int shift = exponent - 53 - kLowest;
  const int digit = shift / 32;
  const int bit = shift % 32;
  // 53 bits that are moved up by 31 or less lie in three digits.
  const bool is_negative = mantissa < 0;
  const auto bits = static_cast<uint64_t>(is_negative ? -mantissa : mantissa);
  const uint64_t parts[] = {bits << bit & kDigit, bits >> (32 - bit) & kDigit, bits >> 32 >> (32 - bit)};
  for (int i = 0; i < 3; ++i) {
    const auto part = static_cast<int64_t>(parts[i]);
    digits_[digit + i] += is_negative ? -part : part;
  }
  constexpr int64_t kMostTerms = int64_t{1} << 30;
  if (++terms_ == kMostTerms) Carry();
}

void ExactSum::Carry() {
  for (int i = 0; i + 1 < kDigits; ++i) {
    const int64_t carried = digits_[i] >> 32;
    digits_[i] -= carried * (int64_t{1} << 32);
    digits_[i + 1] += carried;
  }
  terms_ = 0;
}

void ExactSum::Add(const ExactSum& other) {
  Carry();
  ExactSum carried = other;
  carried.Carry();
  for (int i = 0; i < kDigits; ++i) digits_[i] += carried.digits_[i];
  Carry();
}

long double ExactSum::Value() const {
  ExactSum carried = *this;
  carried.Carry();
  // Of a negative sum the highest digit is negative and the others are not: its magnitude has no digits that cancel.
  const bool is_negative = carried.digits_[kDigits - 1] < 0;
  if (is_negative) {
    for (int64_t& digit : carried.digits_) digit = -digit;
    carried.Carry();
  }
  long double value = 0;
  for (int i = kDigits - 1; i >= 0; --i) {
    value += std::ldexp(static_cast<long double>(carried.digits_[i]), kLowest + 32 * i);
  }
  return is_negative ? -value : value;
}

}  // namespace millrace
