// Loops that are compiled for each SimdLevel: every level against the definition, and against the others.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "kernels/lane_sums.h"
#include "kernels/row_product.h"
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

struct Operands {
  std::vector<float> a, b, bias;
};

Operands OperandsOf(const RowProduct& p) { return {Values(p.m * p.k, 1), Values(p.k * p.n, 2), Values(p.n, 3)}; }

/// The product of B packed, or as it lies.
std::vector<float> Multiplied(SimdLevel level, const RowProduct& p, const Operands& of, bool transpose_b, bool has_bias,
                              bool in_place = false) {
  const RowProductKernels& kernels = RowProductAt(level);
  std::vector<float> c(static_cast<size_t>(p.m * p.n + 1), -7);
  const float* const bias = has_bias ? of.bias.data() : nullptr;
  std::vector<float> room(
      static_cast<size_t>(in_place ? kernels.tail_floats(p.k, p.n) : kernels.packed_floats(p.k, p.n)));
  if (in_place) {
    kernels.run_in_place(p, of.a.data(), of.b.data(), room.data(), bias, c.data());
  } else {
    kernels.pack(of.b.data(), p.k, p.n, transpose_b, room.data());
    kernels.run(p, of.a.data(), room.data(), bias, c.data());
  }
  EXPECT_EQ(c.back(), -7) << "written past the end";
  c.pop_back();
  return c;
}

/// One chain of sums for each value, in the order of k; with AVX2 and AVX-512 each rounded once.
std::vector<float> InOrder(SimdLevel level, const RowProduct& p, const Operands& of, bool transpose_b, bool has_bias) {
  std::vector<float> c;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        const float x = of.a[static_cast<size_t>(p.transpose_a ? l * p.m + i : i * p.k + l)];
        const float y = of.b[static_cast<size_t>(transpose_b ? j * p.k + l : l * p.n + j)];
        // Through volatile: the compiler may not round product and sum at once where the level does not.
        const volatile float product = x * y;
        sum = level == SimdLevel::kBaseline ? sum + product : std::fma(x, y, sum);
      }
      c.push_back(has_bias ? sum + of.bias[static_cast<size_t>(j)] : sum);
    }
  }
  return c;
}

TEST(RowProduct, AddsInTheOrderOfKWhateverTheSizes) {
  for (const SimdLevel level : LevelsHere()) {
    for (int form = 0; form < 8; ++form) {
      const bool transpose_b = (form & 2) != 0;
      const bool has_bias = (form & 4) != 0;
      for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 35}) {
        for (const int64_t n : {1, 5, 8, 12, 16, 17, 24, 33, 48, 49, 100, 200}) {
          for (const int64_t k : {1, 2, 17, 65}) {
            const RowProduct p{m, n, k, (form & 1) != 0};
            const Operands of = OperandsOf(p);
            const std::vector<float> wanted = InOrder(level, p, of, transpose_b, has_bias);
            ASSERT_TRUE(SameBytes(Multiplied(level, p, of, transpose_b, has_bias), wanted))
                << SimdLevelName(level) << " form " << form << ": " << m << "x" << n << "x" << k;
            if (transpose_b) continue;
            ASSERT_TRUE(SameBytes(Multiplied(level, p, of, false, has_bias, true), wanted))
                << SimdLevelName(level) << " in place, form " << form << ": " << m << "x" << n << "x" << k;
          }
        }
      }
    }
  }
}

TEST(RowProduct, TakesBInBlocksWithoutAnotherOrder) {
  const RowProduct p{3, 500, 700, false};
  const Operands of = OperandsOf(p);
  for (const SimdLevel level : LevelsHere()) {
    EXPECT_TRUE(SameBytes(Multiplied(level, p, of, false, true), InOrder(level, p, of, false, true)))
        << SimdLevelName(level);
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

TEST(SoftmaxRow, DoesNotChangeWithPaddingThatCountsForNothing) {
  for (int64_t width = 1; width <= 20; ++width) {
    const std::vector<float> x = Values(width, 3, 5);
    std::vector<float> out(x.size());
    SoftmaxRow(x.data(), width, out.data());
    for (const int64_t padding : {1, 2, 5, 16, 30}) {
      std::vector<float> padded = x;
      padded.resize(static_cast<size_t>(width + padding), -1e9F);
      SoftmaxRow(padded.data(), width + padding, padded.data());
      padded.resize(x.size());
      EXPECT_TRUE(SameBytes(padded, out)) << width << " and " << padding;
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
