#pragma once

#include <cstdint>
#include <vector>

namespace millrace {

/// A sum of doubles without rounding: the result does not depend on their order, or on how they are distributed over
/// sums that are added. One thread.
class ExactSum {
 public:
  /// Adds a finite number.
  void Add(double number);
  /// Adds the exact square of a finite number.
  void AddSquare(double number);
  void Add(const ExactSum& other);
  /// The rounded sum; the error is below the type's last bits for any number of terms.
  long double Value() const;
  /// The standard deviation of `count` numbers, at least 1, from their sum and sum of squares. Rounded only after their
  /// subtraction, so it is accurate however close together the numbers are. 0: all are equal.
  static long double Deviation(const ExactSum& sum, const ExactSum& squares, int64_t count);

 private:
  // 32-bit digits of a fixed-point number, the lowest 2^kLowest: enough for 2^63 squares of any doubles. Each is stored
  // in 64 bits, enough for the carries of 2^30 terms.
  static constexpr int kLowest = -2272;
  static constexpr int kDigits = 139;
  using Digits = std::vector<uint32_t>;  ///< of an unsigned number, lowest first

  /// Adds bits * 2^exponent.
  void AddBits(uint64_t bits, int exponent, bool is_negative);
  void Carry();
  /// The digits of the sum's absolute value, and its sign.
  Digits Magnitude(bool* is_negative) const;
  static Digits Product(const Digits& a, const Digits& b);
  static long double Rounded(const Digits& digits, int lowest);

  int64_t digits_[kDigits] = {};
  int64_t terms_ = 0;  ///< since the last carry
};

}  // namespace millrace
