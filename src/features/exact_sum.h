#pragma once

#include <cstdint>

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

 private:
  // Digits of 32 bits of a number in fixed point, the lowest one 2^kLowest. 64 bits of each hold carries of 2^30 terms.
  static constexpr int kLowest = -1152;
  static constexpr int kDigits = 72;

  void AddTerm(double number);
  void Carry();

  int64_t digits_[kDigits] = {};
  int64_t terms_ = 0;  ///< since the last carry
};

}  // namespace millrace
