#include "clickgen/zipf.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

// log1p(x) / x and expm1(x) / x, whole at 0.
double LogRatio(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
double ExpRatio(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }

}  // namespace

Zipf::Zipf(uint64_t n, double exponent) : n_(n), exponent_(exponent), lower_(0), upper_(0), shortcut_(0) {
  lower_ = Integral(1.5) - 1;
  upper_ = Integral(static_cast<double>(n) + 0.5);
  shortcut_ = 2 - InverseIntegral(Integral(2.5) - std::pow(2.0, -exponent));
}

double Zipf::Integral(double x) const {
  const double log_x = std::log(x);
  return ExpRatio((1 - exponent_) * log_x) * log_x;
}

double Zipf::InverseIntegral(double y) const {
  const double t = std::max(-1.0, y * (1 - exponent_));
  return std::exp(LogRatio(t) * y);
}

uint64_t Zipf::Draw(Rng& random) const {
  while (true) {
    const double u = upper_ + random.Uniform() * (lower_ - upper_);
    const double x = InverseIntegral(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (k - x <= shortcut_ || u >= Integral(k + 0.5) - std::pow(k, -exponent_)) return static_cast<uint64_t>(k) - 1;
  }
}

}  // namespace millrace
