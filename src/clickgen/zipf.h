#pragma once

#include <cstdint>

#include "core/rng.h"

namespace millrace {

/// Draws ranks 0 <= k < n with probability proportional to (k + 1)^-exponent.
///
/// Rejection from the integral of the density (Hörmann and Derflinger 1996): constant memory and some 1.1 tries a draw
/// whatever n is. Immutable, shared by any number of threads.
class Zipf {
 public:
  /// n >= 1, exponent >= 0 (0: every rank alike).
  Zipf(uint64_t n, double exponent);

  uint64_t Draw(Rng& random) const;
  uint64_t n() const { return n_; }

 private:
  double Integral(double x) const;  // of x^-exponent, up to a constant
  double InverseIntegral(double y) const;

  uint64_t n_;
  double exponent_;
  double lower_;
  double upper_;
  double shortcut_;
};

}  // namespace millrace
