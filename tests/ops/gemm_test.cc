#include "ops/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "allocation_counter.h"
#include "core/rng.h"
#include "ops/fc_gradient.h"

namespace millrace {
namespace {

std::vector<float> Random(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(rng.Uniform() * 2 - 1);
  return values;
}

struct Shape {
  int64_t m, n, k;
};

/// The product as its definition says, in double.
std::vector<float> Reference(const GemmSpec& spec, Shape s, const std::vector<float>& a, const std::vector<float>& b,
                             const std::vector<float>& bias) {
  std::vector<float> c(static_cast<size_t>(s.m * s.n));
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = spec.bias ? static_cast<double>(bias[static_cast<size_t>(j)]) : 0;
      for (int64_t p = 0; p < s.k; ++p) {
        const float x = a[static_cast<size_t>(spec.transpose_a ? p * s.m + i : i * s.k + p)];
        const float y = b[static_cast<size_t>(spec.transpose_b ? j * s.k + p : p * s.n + j)];
        sum += static_cast<double>(x) * static_cast<double>(y);
      }
      c[static_cast<size_t>(i * s.n + j)] = static_cast<float>(spec.relu ? std::max(sum, 0.0) : sum);
    }
  }
  return c;
}

void ExpectProduct(Gemm& gemm, const GemmSpec& spec, Shape s, double tolerance) {
  const std::vector<float> a = Random(s.m * s.k, 1);
  const std::vector<float> b = Random(s.k * s.n, 2);
  const std::vector<float> bias = Random(s.n, 3);
  std::vector<float> c(static_cast<size_t>(s.m * s.n), -7);
  const Status status = gemm.Run(s.m, s.n, s.k, a.data(), b.data(), bias.data(), c.data());
  ASSERT_TRUE(status.ok()) << status.ToString();
  const std::vector<float> wanted = Reference(spec, s, a, b, bias);
  for (size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], wanted[i], tolerance) << s.m << "x" << s.n << "x" << s.k;
}

TEST(Gemm, MultipliesEveryForm) {
  for (int form = 0; form < 16; ++form) {
    const GemmSpec spec{.transpose_a = (form & 1) != 0,
                        .transpose_b = (form & 2) != 0,
                        .bias = (form & 4) != 0,
                        .relu = (form & 8) != 0};
    Gemm gemm(spec);
    // The largest, then smaller ones over the same scratchpad, and a shape seen before.
    for (const Shape s : {Shape{33, 17, 40}, {1, 17, 40}, {7, 1, 3}, {33, 17, 40}}) ExpectProduct(gemm, spec, s, 1e-4);
  }
}

TEST(Gemm, ForgetsOldShapesNotAnswers) {
  const GemmSpec spec;
  Gemm gemm(spec);
  for (int64_t m = 1; m <= 12; ++m) ExpectProduct(gemm, spec, {m, 5, 6}, 1e-5);
  ExpectProduct(gemm, spec, {1, 5, 6}, 1e-5);
}

TEST(Gemm, TakesEmptyShapes) {
  const GemmSpec spec{.bias = true, .relu = true};
  Gemm gemm(spec);
  ExpectProduct(gemm, spec, {0, 3, 4}, 0);
  ExpectProduct(gemm, spec, {3, 0, 4}, 0);
  ExpectProduct(gemm, spec, {2, 3, 0}, 0);
}

TEST(Gemm, RoundsInputsToBfloat16WhereTheProcessorCan) {
  if (!CpuHasBf16()) GTEST_SKIP() << "this processor has no bfloat16 products";
  for (const bool transpose : {false, true}) {
    const GemmSpec spec{.transpose_a = transpose, .transpose_b = transpose, .bf16 = true};
    Gemm gemm(spec);
    ExpectProduct(gemm, spec, {32, 16, 64}, 0.1);
    ExpectProduct(gemm, spec, {5, 16, 64}, 0.1);
  }
}

TEST(Gemm, AllocatesNothingOfOursForAKnownShape) {
  Gemm gemm(GemmSpec{.bias = true, .relu = true});
  const std::vector<float> a = Random(64 * 64, 1);
  std::vector<float> c(64 * 64);
  const auto run = [&](int64_t m) {
    const AllocationCounter counter;
    EXPECT_TRUE(gemm.Run(m, 64, 64, a.data(), a.data(), a.data(), c.data()).ok());
    return counter.count();
  };
  run(64);
  run(16);
  // What is left is oneDNN's map of arguments: the same few for every shape and time.
  const int64_t first = run(64);
  EXPECT_LE(first, 9);
  EXPECT_EQ(run(16), first);
  EXPECT_EQ(run(64), first);
}

TEST(FcGradient, IsEqualAtEveryLevel) {
  const int64_t rows = 9;
  const int64_t width = 37;
  const std::vector<float> out = Random(rows * width, 1);
  const std::vector<float> grad = Random(rows * width, 2);
  const auto run = [&](SimdLevel level) {
    std::vector<float> result(static_cast<size_t>(rows * width + 2 * width));
    float* to = result.data();
    FcGradientAt(level).relu(out.data(), grad.data(), rows, width, to, to + rows * width);
    FcGradientAt(level).column_sums(grad.data(), rows, width, to + rows * width + width);
    return result;
  };
  const std::vector<float> baseline = run(SimdLevel::kBaseline);
  EXPECT_EQ(baseline[0], out[0] > 0 ? grad[0] : 0);
  for (const SimdLevel level : {SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    if (level > DetectSimdLevel()) continue;
    EXPECT_EQ(run(level), baseline) << SimdLevelName(level);
  }
}

}  // namespace
}  // namespace millrace
