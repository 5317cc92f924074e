#include "clickgen/zipf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace millrace {
namespace {

std::vector<double> Shares(int n, double exponent) {
  std::vector<double> shares;
  double total = 0;
  for (int k = 1; k <= n; ++k) total += std::pow(k, -exponent);
  for (int k = 1; k <= n; ++k) shares.push_back(std::pow(k, -exponent) / total);
  return shares;
}

// The largest |drawn - expected| over ranks in standard errors: beyond 5 by chance once in some 100,000 seeds.
double LargestDeviation(const Zipf& zipf, const std::vector<double>& shares) {
  constexpr int kDraws = 200000;
  Rng random(42);
  std::vector<int> drawn(shares.size());
  for (int i = 0; i < kDraws; ++i) ++drawn[zipf.Draw(random)];
  double largest = 0;
  for (size_t k = 0; k < shares.size(); ++k) {
    const double error = std::sqrt(kDraws * shares[k] * (1 - shares[k]));
    largest = std::max(largest, std::abs(drawn[k] - kDraws * shares[k]) / error);
  }
  return largest;
}

// The draw as Hörmann and Derflinger write it, with nothing standing in for the formulas.
class PlainZipf {
 public:
  PlainZipf(uint64_t n, double exponent) : n_(static_cast<double>(n)), exponent_(exponent) {}

  uint64_t Draw(Rng& random) const {
    const double lower = Integral(1.5) - 1;
    const double upper = Integral(n_ + 0.5);
    const double shortcut = 2 - InverseIntegral(Integral(2.5) - std::pow(2.0, -exponent_));
    while (true) {
      const double u = upper + random.Uniform() * (lower - upper);
      const double x = InverseIntegral(u);
      const double k = std::clamp(std::floor(x + 0.5), 1.0, n_);
      if (k - x <= shortcut || u >= Integral(k + 0.5) - std::pow(k, -exponent_)) return static_cast<uint64_t>(k) - 1;
    }
  }

 private:
  double Integral(double x) const {
    const double y = (1 - exponent_) * std::log(x);
    return (std::abs(y) > 1e-8 ? std::expm1(y) / y : 1 + y / 2) * std::log(x);
  }
  double InverseIntegral(double y) const {
    const double t = std::max(-1.0, y * (1 - exponent_));
    return std::exp((std::abs(t) > 1e-8 ? std::log1p(t) / t : 1 - t / 2) * y);
  }

  double n_;
  double exponent_;
};

TEST(Zipf, EveryRankIsThatOfTheFormula) {
  for (const uint64_t n : {uint64_t{1}, uint64_t{4}, uint64_t{100}, uint64_t{100000}, uint64_t{1} << 48}) {
    for (const double exponent : {0.0, 0.5, 0.999999999, 1.0, 1.05, 2.5, 8.0}) {
      const Zipf zipf(n, exponent);
      const PlainZipf plain(n, exponent);
      Rng random(n);
      Rng same(n);
      for (int i = 0; i < 20000; ++i) ASSERT_EQ(zipf.Draw(random), plain.Draw(same)) << n << ' ' << exponent;
      EXPECT_EQ(random.Next(), same.Next());
    }
  }
}

TEST(Zipf, DrawsRanksByThePowerLaw) {
  for (double exponent : {0.0, 0.5, 1.0, 1.05, 2.5}) {
    EXPECT_LT(LargestDeviation(Zipf(20, exponent), Shares(20, exponent)), 5) << exponent;
  }
}

TEST(Zipf, ANeighbouringLawIsTold) {
  // The test above would be worth little if a law that is a little off passed it.
  EXPECT_GT(LargestDeviation(Zipf(20, 1.05), Shares(20, 1.0)), 5);
  EXPECT_GT(LargestDeviation(Zipf(20, 1.0), Shares(21, 1.0)), 5);
}

TEST(Zipf, OneRankIsAlwaysDrawn) {
  const Zipf zipf(1, 1.05);
  Rng random(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(zipf.Draw(random), 0u);
}

TEST(Zipf, HugeVocabulariesStayInRange) {
  const uint64_t n = uint64_t{1} << 40;
  const Zipf zipf(n, 0.5);
  Rng random(3);
  uint64_t largest = 0;
  for (int i = 0; i < 10000; ++i) largest = std::max(largest, zipf.Draw(random));
  EXPECT_LT(largest, n);
  EXPECT_GT(largest, n / 2);
}

}  // namespace
}  // namespace millrace
