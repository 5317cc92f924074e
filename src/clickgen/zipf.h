#pragma once

#include <cstdint>
#include <vector>

#include "core/rng.h"

namespace millrace {

/// Draws ranks 0 <= k < n with probability proportional to (k + 1)^-exponent.
///
/// Rejection from the integral of the density (Hörmann and Derflinger 1996): some 1.1 tries a draw whatever n is. A
/// cubic of known error stands in for the integral's inverse wherever it leaves no doubt about the rank, so that ranks
/// are those of the formula. 10 kB; immutable, shared by any number of threads.
class Zipf {
 public:
  /// n >= 1, exponent >= 0 (0: every rank alike).
  Zipf(uint64_t n, double exponent);

  uint64_t Draw(Rng& random) const;
  uint64_t n() const { return n_; }

 private:
  // Near x + 0.5 for uniform numbers of [i, i + 1) / 256, as a cubic of how far the number is in there.
  struct Cell {
    double cubic[4];
    double error;  // never more than this
  };
  double Integral(double x) const;  // of x^-exponent, up to a constant
  double InverseIntegral(double y) const;
  double IntegralOf(double uniform) const { return upper_ + uniform * (lower_ - upper_); }
  Cell MakeCell(int i) const;
  // The rank that a uniform number stands for, by the formula; n when the number is rejected.
  uint64_t RankOf(double uniform) const;

  uint64_t n_;
  double exponent_;
  double lower_;
  double upper_;
  double shortcut_;
  std::vector<Cell> cells_;
};

}  // namespace millrace
