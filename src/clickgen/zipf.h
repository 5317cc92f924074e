#pragma once

#include <cstdint>
#include <vector>

#include "core/rng.h"

namespace millrace {

/// Draws ranks 0 <= k < n with probability proportional to (k + 1)^-exponent.
///
/// Uses rejection from the integral of the density (Hörmann and Derflinger 1996): about 1.1 tries per draw for any n. A
/// cubic with known error replaces the integral's inverse if it determines the rank with certainty, so ranks equal
/// those of the formula. 10 kB; immutable, shared by any number of threads.
class Zipf {
 public:
  /// n >= 1, exponent >= 0 (0: uniform).
  Zipf(uint64_t n, double exponent);

  uint64_t Draw(Rng& random) const;
  uint64_t n() const { return n_; }

 private:
  // Approximates x + 0.5 for uniform numbers in [i, i + 1) / 256, as a cubic of the position in the cell.
  struct Cell {
    double cubic[4];
    double error;  // upper bound
  };
  double Integral(double x) const;  // of x^-exponent, up to a constant
  double InverseIntegral(double y) const;
  double IntegralOf(double uniform) const { return upper_ + uniform * (lower_ - upper_); }
  Cell MakeCell(int i) const;
  // The rank for a uniform number, by the formula; n if the number is rejected.
  uint64_t RankOf(double uniform) const;

  uint64_t n_;
  double exponent_;
  double lower_;
  double upper_;
  double shortcut_;
  std::vector<Cell> cells_;
};

}  // namespace millrace
