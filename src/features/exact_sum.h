#pragma once

#include <cstdint>
#include <vector>

namespace millrace {

/// A sum of doubles without rounding: whatever their order and however they are divided among sums that are added up,
/// the result is the same. One thread.
class ExactSum {
 public:
  /// Adds a finite number.
  void Add(double number);
  /// Adds the square of a finite number, to the last bit.
  void AddSquare(double number);
  void Add(const ExactSum& other);
  /// Rounded; of few terms or many it is off by less than the type's last bits.
  long double Value() const;
  /// The standard deviation of `count` numbers, at least 1, from their sum and that of their squares: rounded only
  /// after these are subtracted, so that it is exact however close together the numbers lie. 0: they are all alike.
  static long double Deviation(const ExactSum& sum, const ExactSum& squares, int64_t count);

 private:
  // Digits of 32 bits of a number in fixed point, the lowest one 2^kLowest: of squares of all doubles, and of 2^63 of
  // them. 64 bits of each hold carries of 2^30 terms.
  static constexpr int kLowest = -2272;
  static constexpr int kDigits = 139;
  using Digits = std::vector<uint32_t>;  ///< of a number without a sign, the lowest first

  /// Adds bits * 2^exponent.
  void AddBits(uint64_t bits, int exponent, bool is_negative);
  void Carry();
  /// The digits of the sum without its sign, and whether it is below 0.
  Digits Magnitude(bool* is_negative) const;
  static Digits Product(const Digits& a, const Digits& b);
  static long double Rounded(const Digits& digits, int lowest);

  int64_t digits_[kDigits] = {};
  int64_t terms_ = 0;  ///< since the last carry
};

}  // namespace millrace
