#include "kernels/racy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace millrace::racy {
namespace {

std::vector<float> Random(std::mt19937& rng, size_t n, float low = -1.0F, float high = 1.0F) {
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> values(n);
  for (float& v : values) v = draw(rng);
  return values;
}

std::vector<SimdLevel> Levels() {
  std::vector<SimdLevel> levels = {SimdLevel::kBaseline};
  if (DetectSimdLevel() >= SimdLevel::kAvx2) levels.push_back(SimdLevel::kAvx2);
  if (DetectSimdLevel() >= SimdLevel::kAvx512) levels.push_back(SimdLevel::kAvx512);
  return levels;
}

// Everything that a level can do, on the same random input, end to end in one vector.
std::vector<float> Everything(const Kernels& k, size_t n, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<float> all;
  const auto keep = [&all](const std::vector<float>& v) { all.insert(all.end(), v.begin(), v.end()); };
  const std::vector<float> g = Random(rng, n);
  std::vector<float> w = Random(rng, n);
  std::vector<float> s1 = Random(rng, n, 0.0F);
  std::vector<float> s2 = Random(rng, n, 0.0F);
  k.axpy_row(0.3F, g.data(), w.data(), n);
  k.add_row(g.data(), s2.data(), n);
  for (float& v : s2) v = std::fabs(v);
  k.sgd_row({0.1F}, g.data(), w.data(), n);
  k.adagrad_row({0.1F, 1e-6F}, g.data(), w.data(), s1.data(), n);
  k.adam_row({0.1F, 0.9F, 0.999F, 1e-8F}, g.data(), w.data(), s1.data(), s2.data(), n);
  for (float& v : s1) v = std::fabs(v);
  k.ftrl_row({0.1F, 0.4F, 2.0F}, g.data(), w.data(), s1.data(), s2.data(), n);
  keep(w), keep(s1), keep(s2);

  constexpr size_t kRows = 23;
  std::vector<float> table = Random(rng, kRows * 3 * n, 0.0F);
  std::vector<float*> rows(kRows);
  for (size_t i = 0; i < kRows; ++i) rows[i] = i == 5 ? nullptr : table.data() + i * 3 * n;
  const std::vector<uint32_t> offsets = {0, 3, 3, 4, 12, 30};
  std::vector<uint32_t> index(30);
  for (uint32_t& i : index) i = static_cast<uint32_t>(rng() % kRows);
  const std::vector<float> grads = Random(rng, kRows * n);
  for (const Pooling pooling : {Pooling::kSum, Pooling::kAverage, Pooling::kSqrt}) {
    std::vector<float> out(5 * (n + 2), -7.0F);
    k.pool_rows(rows.data(), index.data(), offsets.data(), 5, n, pooling, out.data(), n + 2);
    keep(out);
    std::vector<float> sums(kRows * n);
    k.spread_rows(out.data(), n + 2, index.data(), offsets.data(), 5, n, pooling, sums.data());
    keep(sums);
  }
  k.sgd_rows({0.1F}, rows.data(), grads.data(), kRows, n);
  k.adagrad_rows({0.1F, 1e-6F}, rows.data(), grads.data(), kRows, n, n);
  k.adam_rows({0.1F, 0.9F, 0.999F, 1e-8F}, rows.data(), grads.data(), kRows, n, n);
  for (float& v : table) v = std::fabs(v);
  k.ftrl_rows({0.1F, 0.01F, 2.0F}, rows.data(), grads.data(), kRows, n, n);
  keep(table);
  std::vector<float> m1 = Random(rng, kRows * n, 0.0F);
  std::vector<float> m2 = Random(rng, kRows * n, 0.0F);
  const std::vector<uint64_t> ids = {3, 22, 0, 7, 11, 1, 2, 9, 8, 20};
  k.sgd_matrix_rows({0.1F}, ids.data(), grads.data(), ids.size(), n, table.data(), nullptr, nullptr);
  k.adagrad_matrix_rows({0.1F, 1e-6F}, ids.data(), grads.data(), ids.size(), n, table.data(), m1.data(), nullptr);
  k.adam_matrix_rows({0.1F, 0.9F, 0.99F, 1e-8F}, ids.data(), grads.data(), ids.size(), n, table.data(), m1.data(),
                     m2.data());
  for (float& v : m1) v = std::fabs(v);
  k.ftrl_matrix_rows({0.1F, 0.01F, 2.0F}, ids.data(), grads.data(), ids.size(), n, table.data(), m1.data(), m2.data());
  keep(table), keep(m1), keep(m2);
  return all;
}

TEST(Racy, AllLevelsGiveTheSameBits) {
  for (const size_t n : {1, 3, 8, 10, 16, 17, 32, 64, 100}) {
    const std::vector<float> checked = Everything(Checked(), n, static_cast<uint32_t>(n));
    for (const float v : checked) ASSERT_TRUE(std::isfinite(v)) << "n = " << n;
    for (const SimdLevel level : Levels()) {
      EXPECT_EQ(Everything(KernelsOf(level), n, static_cast<uint32_t>(n)), checked)
          << SimdLevelName(level) << ", n = " << n;
    }
  }
}

TEST(Racy, RulesAreThePublishedOnes) {
  float w = 1.0F;
  float a = 4.0F;
  const float g = 0.5F;
  AdagradRow({0.1F, 0.25F}, &g, &w, &a, 1);
  EXPECT_FLOAT_EQ(a, 4.25F);
  EXPECT_FLOAT_EQ(w, 1.0F - 0.1F * 0.5F / (std::sqrt(4.25F) + 0.25F));

  // Paddle's Adam, second step.
  w = 1.0F;
  float m1 = 0.2F;
  float m2 = 0.3F;
  AdamRow(MakeAdamStep(0.01F, 0.9F, 0.999F, 1e-8F, 0.81F, 0.998001F), &g, &w, &m1, &m2, 1);
  EXPECT_FLOAT_EQ(m1, 0.23F);
  EXPECT_FLOAT_EQ(m2, 0.29995F);
  const double lr = 0.01 * std::sqrt(1 - 0.998001) / (1 - 0.81);
  EXPECT_NEAR(w, 1 - lr * 0.23 / (std::sqrt(0.29995) + 1e-8 * std::sqrt(1 - 0.998001)), 1e-7);

  // McMahan's FTRL: alpha 0.5, beta 1, l1 0.1, l2 0.3.
  w = 0.0F;
  float n = 0.0F;
  float z = 0.0F;
  FtrlRow({0.5F, 0.1F, 1.0F / 0.5F + 0.3F}, &g, &w, &n, &z, 1);
  EXPECT_FLOAT_EQ(n, 0.25F);
  EXPECT_FLOAT_EQ(z, 0.5F);
  EXPECT_FLOAT_EQ(w, -(0.5F - 0.1F) / ((1.0F + 0.5F) / 0.5F + 0.3F));
  const float small = 0.01F;
  n = z = 0.0F;
  FtrlRow({0.5F, 0.1F, 2.3F}, &small, &w, &n, &z, 1);
  EXPECT_EQ(w, 0.0F) << "below l1 a weight is exactly zero";
}

// A NaN in z is no weight of 0.
TEST(Racy, EveryRuleHandsNanOnToTheWeightAtEveryLevel) {
  constexpr size_t kCount = 19;
  const std::vector<float> grad(kCount, std::nanf(""));
  for (const SimdLevel level : Levels()) {
    const Kernels& kernels = KernelsOf(level);
    std::vector<float> w[4];
    for (std::vector<float>& weights : w) weights.assign(kCount, 0.5F);
    std::vector<float> one(kCount, 0.25F);
    std::vector<float> two(kCount, 0.25F);
    kernels.sgd_row({0.1F}, grad.data(), w[0].data(), kCount);
    kernels.adagrad_row({0.1F, 0.1F}, grad.data(), w[1].data(), one.data(), kCount);
    kernels.adam_row({0.1F, 0.9F, 0.9F, 0.1F}, grad.data(), w[2].data(), one.data(), two.data(), kCount);
    one.assign(kCount, 0.25F);
    two.assign(kCount, 0.25F);
    kernels.ftrl_row({0.5F, 0.1F, 1.0F}, grad.data(), w[3].data(), one.data(), two.data(), kCount);
    for (size_t rule = 0; rule < 4; ++rule) {
      for (const float weight : w[rule]) {
        EXPECT_TRUE(std::isnan(weight)) << SimdLevelName(level) << " rule " << rule;
      }
    }
  }
}

TEST(Racy, PoolingDividesAsNamedAndEmptySequencesGiveZeros) {
  float rows[3][2] = {{1, 2}, {3, 4}, {5, 6}};
  const std::vector<float*> pointers = {rows[0], rows[1], rows[2]};
  const std::vector<uint32_t> index = {0, 1, 2, 2};
  const std::vector<uint32_t> offsets = {0, 0, 4};
  std::vector<float> out(4, 9.0F);
  Best().pool_rows(pointers.data(), index.data(), offsets.data(), 2, 2, Pooling::kSum, out.data(), 2);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 14, 18}));
  Best().pool_rows(pointers.data(), index.data(), offsets.data(), 2, 2, Pooling::kAverage, out.data(), 2);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 3.5, 4.5}));
  Best().pool_rows(pointers.data(), index.data(), offsets.data(), 2, 2, Pooling::kSqrt, out.data(), 2);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 7, 9}));
}

}  // namespace
}  // namespace millrace::racy
