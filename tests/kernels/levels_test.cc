// Loops that are compiled for each SimdLevel: every level against the definition, and against the others.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "kernels/lane_sums.h"
#include "kernels/small_product.h"
#include "kernels/softmax_row.h"

namespace millrace {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Values(int64_t count, uint64_t seed, double largest = 1) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>((rng.Uniform() * 2 - 1) * largest);
  return values;
}

std::vector<SimdLevel> LevelsHere() {
  std::vector<SimdLevel> levels;
  for (const SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    if (level <= DetectSimdLevel()) levels.push_back(level);
  }
  return levels;
}

bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> Multiplied(SimdLevel level, const SmallProduct& p, const std::vector<float>& a,
                              const std::vector<float>& b, const float* bias) {
  std::vector<float> c(static_cast<size_t>(p.m * p.n + 1), -7);
  SmallProductAt(level)(p, a.data(), b.data(), bias, c.data());
  EXPECT_EQ(c.back(), -7) << "written behind the end";
  c.pop_back();
  return c;
}

TEST(SmallProduct, MultipliesEveryFormAndOddSizes) {
  for (const SimdLevel level : LevelsHere()) {
    for (int form = 0; form < 8; ++form) {
      for (const int64_t m : {1, 3, 4, 9, 13}) {
        for (const int64_t n : {1, 5, 8, 9, 16, 20, 33}) {
          for (const int64_t k : {1, 2, 7, 16, 33}) {
            const SmallProduct p{m, n, k, (form & 1) != 0, (form & 2) != 0};
            ASSERT_TRUE(p.Fits());
            const std::vector<float> a = Values(m * k, 1);
            const std::vector<float> b = Values(k * n, 2);
            const std::vector<float> bias = Values(n, 3);
            const std::vector<float> c = Multiplied(level, p, a, b, (form & 4) != 0 ? bias.data() : nullptr);
            for (int64_t i = 0; i < m; ++i) {
              for (int64_t j = 0; j < n; ++j) {
                double sum = (form & 4) != 0 ? static_cast<double>(bias[static_cast<size_t>(j)]) : 0;
                for (int64_t l = 0; l < k; ++l) {
                  const float x = a[static_cast<size_t>(p.transpose_a ? l * m + i : i * k + l)];
                  const float y = b[static_cast<size_t>(p.transpose_b ? j * k + l : l * n + j)];
                  sum += static_cast<double>(x) * static_cast<double>(y);
                }
                ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum, 1e-5)
                    << SimdLevelName(level) << " form " << form << ": " << m << "x" << n << "x" << k;
              }
            }
          }
        }
      }
    }
  }
}

TEST(SmallProduct, ARowDoesNotDependOnTheOthers) {
  const std::vector<float> a = Values(13 * 7, 1);
  const std::vector<float> b = Values(7 * 20, 2);
  for (const SimdLevel level : LevelsHere()) {
    const std::vector<float> all = Multiplied(level, {13, 20, 7}, a, b, nullptr);
    for (int64_t row = 0; row < 13; ++row) {
      const std::vector<float> one(a.begin() + row * 7, a.begin() + row * 7 + 7);
      EXPECT_TRUE(SameBytes(Multiplied(level, {1, 20, 7}, one, b, nullptr),
                            {all.begin() + row * 20, all.begin() + row * 20 + 20}));
    }
  }
}

TEST(LaneSums, AreTheSameAtEveryLevel) {
  for (const int64_t count : {0, 1, 15, 16, 17, 31, 32, 100, 1000}) {
    const std::vector<float> x = Values(count, 5);
    double sum = 0;
    double absolutes = 0;
    double squares = 0;
    for (const float value : x) {
      sum += static_cast<double>(value);
      absolutes += std::abs(static_cast<double>(value));
      squares += (static_cast<double>(value) - 0.3) * (static_cast<double>(value) - 0.3);
    }
    const LaneSumKernels& first = LaneSumsAt(SimdLevel::kBaseline);
    for (const SimdLevel level : LevelsHere()) {
      const LaneSumKernels& kernels = LaneSumsAt(level);
      EXPECT_NEAR(kernels.values(x.data(), count), sum, 1e-12);
      EXPECT_NEAR(kernels.absolutes(x.data(), count), absolutes, 1e-11);
      EXPECT_NEAR(kernels.squares(x.data(), count, 0.3), squares, 1e-11);
      EXPECT_EQ(kernels.values(x.data(), count), first.values(x.data(), count)) << SimdLevelName(level);
      EXPECT_EQ(kernels.absolutes(x.data(), count), first.absolutes(x.data(), count)) << SimdLevelName(level);
      EXPECT_EQ(kernels.squares(x.data(), count, 0.3), first.squares(x.data(), count, 0.3)) << SimdLevelName(level);
    }
  }
}

TEST(LaneSums, KeepNan) {
  for (const int64_t count : {3, 40}) {
    std::vector<float> x(static_cast<size_t>(count), 1);
    x[2] = kNoNumber;
    for (const SimdLevel level : LevelsHere()) {
      EXPECT_TRUE(std::isnan(LaneSumsAt(level).values(x.data(), count)));
      EXPECT_TRUE(std::isnan(LaneSumsAt(level).absolutes(x.data(), count)));
      EXPECT_TRUE(std::isnan(LaneSumsAt(level).squares(x.data(), count, 1)));
    }
  }
}

TEST(SoftmaxRow, IsTheSameAtEveryLevelAndNearTheDefinition) {
  for (const int64_t width : {1, 2, 5, 7, 8, 9, 16, 20, 33, 200}) {
    const std::vector<float> x = Values(width, 7, 20);
    const std::vector<float> grad = Values(width, 8);
    double most = -1e9;
    double sum = 0;
    for (const float value : x) most = std::max(most, static_cast<double>(value));
    for (const float value : x) sum += std::exp(static_cast<double>(value) - most);
    std::vector<float> first;
    std::vector<float> first_grad;
    for (const SimdLevel level : LevelsHere()) {
      std::vector<float> out(x.size());
      std::vector<float> x_grad(x.size());
      SoftmaxAt(level).row(x.data(), width, out.data());
      SoftmaxAt(level).grad_row(out.data(), grad.data(), width, x_grad.data());
      double dot = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double wanted = std::exp(static_cast<double>(x[i]) - most) / sum;
        EXPECT_NEAR(out[i], wanted, 2e-6 * wanted) << width;
        dot += static_cast<double>(out[i]) * static_cast<double>(grad[i]);
      }
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(x_grad[i], static_cast<double>(out[i]) * (static_cast<double>(grad[i]) - dot), 1e-6) << width;
      }
      if (first.empty()) first = out, first_grad = x_grad;
      EXPECT_TRUE(SameBytes(out, first) && SameBytes(x_grad, first_grad)) << SimdLevelName(level) << " " << width;
      std::vector<float> in_place = x;
      SoftmaxAt(level).row(in_place.data(), width, in_place.data());
      EXPECT_TRUE(SameBytes(in_place, out)) << width;
    }
  }
}

TEST(SoftmaxRow, ShortRowsAreNearTheDefinitionToo) {
  for (const int64_t width : {0, 1, 2, 3, 5, 6, 7}) {
    const std::vector<float> x = Values(width, 9);
    const std::vector<float> grad = Values(width, 10);
    double sum = 0;
    for (const float value : x) sum += std::exp(static_cast<double>(value));
    std::vector<float> out(x.size());
    std::vector<float> x_grad(x.size());
    SoftmaxRow(x.data(), width, out.data());
    SoftmaxGradRow(out.data(), grad.data(), width, x_grad.data());
    double dot = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(out[i], std::exp(static_cast<double>(x[i])) / sum, 1e-6) << width;
      dot += static_cast<double>(out[i]) * static_cast<double>(grad[i]);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x_grad[i], static_cast<double>(out[i]) * (static_cast<double>(grad[i]) - dot), 1e-6) << width;
    }
  }
}

TEST(SoftmaxRow, TakesInfinitiesAndNan) {
  for (const SimdLevel level : LevelsHere()) {
    const auto softmax = [&](std::vector<float> x) {
      SoftmaxAt(level).row(x.data(), static_cast<int64_t>(x.size()), x.data());
      return x;
    };
    EXPECT_EQ(softmax({-kInfinity, 3, -1e9F}), (std::vector<float>{0, 1, 0}));
    EXPECT_EQ(softmax({}), std::vector<float>{});
    for (const std::vector<float>& x :
         {std::vector<float>{kNoNumber, 1}, {1, kNoNumber}, {-kInfinity, -kInfinity}, {kInfinity, 1}}) {
      for (const float value : softmax(x)) EXPECT_TRUE(std::isnan(value)) << SimdLevelName(level);
    }
  }
}

}  // namespace
}  // namespace millrace
