#include "features/exact_sum.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr uint64_t kDigit = 0xffffffffU;
constexpr int kDigitBits = 32;

/// |number| is the 53-bit mantissa times 2^exponent.
uint64_t MantissaOf(double number, int* exponent) {
  constexpr int kBits = 53;
  const double fraction = std::frexp(std::abs(number), exponent);  // 0.5 to 1
  *exponent -= kBits;
  return static_cast<uint64_t>(std::ldexp(fraction, kBits));
}

}  // namespace

void ExactSum::Add(double number) {
  int exponent = 0;
  const uint64_t mantissa = MantissaOf(number, &exponent);
  AddBits(mantissa, exponent, number < 0);
}

void ExactSum::AddSquare(double number) {
  int exponent = 0;
  const uint64_t mantissa = MantissaOf(number, &exponent);
  constexpr int kLow = 27;
  const uint64_t high = mantissa >> kLow;
  const uint64_t low = mantissa & ((uint64_t{1} << kLow) - 1);
  AddBits(high * high, 2 * exponent + 2 * kLow, false);
  AddBits(high * low, 2 * exponent + kLow + 1, false);
  AddBits(low * low, 2 * exponent, false);
}

void ExactSum::AddBits(uint64_t bits, int exponent, bool is_negative) {
  if (bits == 0) return;
  const int shift = exponent - kLowest;
  const int digit = shift / kDigitBits;
  const int bit = shift % kDigitBits;
  // 64 bits shifted up by at most 31 span three digits.
  const uint64_t parts[] = {bits << bit & kDigit, bits >> (kDigitBits - bit) & kDigit,
                            bits >> kDigitBits >> (kDigitBits - bit)};
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

ExactSum::Digits ExactSum::Magnitude(bool* is_negative) const {
  ExactSum carried = *this;
  carried.Carry();
  // The highest digit of a negative sum is negative and the others are not: its magnitude has no cancellation.
  *is_negative = carried.digits_[kDigits - 1] < 0;
  if (*is_negative) {
    for (int64_t& digit : carried.digits_) digit = -digit;
    carried.Carry();
  }
  Digits digits;
  for (const int64_t digit : carried.digits_) digits.push_back(static_cast<uint32_t>(digit));
  return digits;
}

ExactSum::Digits ExactSum::Product(const Digits& a, const Digits& b) {
  Digits product(a.size() + b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    uint64_t carried = 0;
    for (size_t k = 0; k < b.size(); ++k) {
      carried += uint64_t{a[i]} * b[k] + product[i + k];
      product[i + k] = static_cast<uint32_t>(carried);
      carried >>= kDigitBits;
    }
    product[i + b.size()] = static_cast<uint32_t>(carried);
  }
  return product;
}

long double ExactSum::Rounded(const Digits& digits, int lowest) {
  long double value = 0;
  for (size_t i = digits.size(); i-- > 0;) {
    value += std::ldexp(static_cast<long double>(digits[i]), lowest + kDigitBits * static_cast<int>(i));
  }
  return value;
}

long double ExactSum::Value() const {
  bool is_negative = false;
  const long double value = Rounded(Magnitude(&is_negative), kLowest);
  return is_negative ? -value : value;
}

long double ExactSum::Deviation(const ExactSum& sum, const ExactSum& squares, int64_t count) {
  // The variance is (count * squares - sum * sum) / count^2. The first product has higher lowest digits.
  bool unused = false;
  const auto bits = static_cast<uint64_t>(count);
  Digits more =
      Product(squares.Magnitude(&unused), {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> kDigitBits)});
  more.insert(more.begin(), -kLowest / kDigitBits, 0);
  const Digits magnitude = sum.Magnitude(&unused);
  Digits less = Product(magnitude, magnitude);
  less.resize(std::max(more.size(), less.size()));
  more.resize(less.size());
  bool borrows = false;
  for (size_t i = 0; i < more.size(); ++i) {
    const uint64_t taken = uint64_t{less[i]} + (borrows ? 1 : 0);
    borrows = more[i] < taken;
    more[i] = static_cast<uint32_t>(more[i] - taken);
  }
  return std::sqrt(Rounded(more, 2 * kLowest)) / static_cast<long double>(count);
}

}  // namespace millrace
