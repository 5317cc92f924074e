#include "clickgen/zipf.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr int kCells = 256;
constexpr double kMostSure = 1e11;  // larger ranks are never certain

// log1p(x) / x and expm1(x) / x, defined at 0.
double LogRatio(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
double ExpRatio(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }

}  // namespace

Zipf::Zipf(uint64_t n, double exponent) : n_(n), exponent_(exponent), lower_(0), upper_(0), shortcut_(0) {
  lower_ = Integral(1.5) - 1;
  upper_ = Integral(static_cast<double>(n) + 0.5);
  shortcut_ = 2 - InverseIntegral(Integral(2.5) - std::pow(2.0, -exponent));
  cells_.reserve(kCells);
  for (int i = 0; i < kCells; ++i) cells_.push_back(MakeCell(i));
}

double Zipf::Integral(double x) const {
  const double log_x = std::log(x);
  return ExpRatio((1 - exponent_) * log_x) * log_x;
}

double Zipf::InverseIntegral(double y) const {
  const double t = std::max(-1.0, y * (1 - exponent_));
  return std::exp(LogRatio(t) * y);
}

Zipf::Cell Zipf::MakeCell(int i) const {
  const double width = (lower_ - upper_) / kCells;
  const auto x_at = [&](double t) { return InverseIntegral(IntegralOf((i + t) / kCells)); };
  const auto slope_at = [&](double x) { return width * std::pow(x, exponent_); };
  const double x0 = x_at(0);
  const double x1 = x_at(1);
  const double rise = x1 - x0;
  const double bend0 = slope_at(x0) - rise;
  const double bend1 = slope_at(x1) - rise;
  Cell cell{{x0 + 0.5, rise + bend0, -2 * bend0 - bend1, bend0 + bend1}, 0};
  // The error is largest near the middle. The last term exceeds the formula's own rounding.
  for (const double t : {0.25, 0.5, 0.75}) {
    const double y = ((cell.cubic[3] * t + cell.cubic[2]) * t + cell.cubic[1]) * t + cell.cubic[0];
    cell.error = std::max(cell.error, 4 * std::abs(y - 0.5 - x_at(t)));
  }
  cell.error += 1e-12 * (1 + std::max(x0, x1));
  return cell;
}

uint64_t Zipf::RankOf(double uniform) const {
  const double u = IntegralOf(uniform);
  const double x = InverseIntegral(u);
  const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
  const bool accepted = k - x <= shortcut_ || u >= Integral(k + 0.5) - std::pow(k, -exponent_);
  return accepted ? static_cast<uint64_t>(k) - 1 : n_;
}

uint64_t Zipf::Draw(Rng& random) const {
  const double most = std::min(static_cast<double>(n_) + 1, kMostSure);
  const double rejected = std::max(0.0, 0.5 - shortcut_);
  while (true) {
    const double uniform = random.Uniform();
    const double at = uniform * kCells;
    const auto i = static_cast<int>(at);
    const Cell& cell = cells_[static_cast<size_t>(i)];
    const double t = at - i;
    const double y = ((cell.cubic[3] * t + cell.cubic[2]) * t + cell.cubic[1]) * t + cell.cubic[0];
    if (y >= 1 && y < most) [[likely]] {
      const auto k = static_cast<int64_t>(y);
      const double over = y - static_cast<double>(k);  // accepted immediately from 0.5 - shortcut_ on
      if (over > rejected + cell.error && over < 1 - cell.error) [[likely]]
        return static_cast<uint64_t>(k) - 1;
    }
    const uint64_t rank = RankOf(uniform);
    if (rank < n_) return rank;
  }
}

}  // namespace millrace
