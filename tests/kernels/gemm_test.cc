#include "kernels/gemm.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "allocation_counter.h"
#include "core/rng.h"
#include "kernels/fc_gradient.h"
#include "kernels/packed_weights.h"
#include "sanitized.h"

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
    for (const Shape s : {Shape{65, 17, 40}, {48, 17, 41}, {7, 1, 3}, {1, 90, 70}, {65, 17, 40}})
      ExpectProduct(gemm, spec, s, 1e-4);
  }
}

TEST(Gemm, ForgetsOldShapesNotAnswers) {
  const GemmSpec spec;
  Gemm gemm(spec);
  for (int64_t m = 1; m <= 12; ++m) ExpectProduct(gemm, spec, {m, 90, 70}, 1e-4);
  ExpectProduct(gemm, spec, {1, 90, 70}, 1e-4);
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

// oneDNN's own relu makes it 0.
TEST(Gemm, KeepsNanBehindRelu) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const bool bf16 : {false, true}) {
    Gemm gemm(GemmSpec{.bias = true, .relu = true, .bf16 = bf16});
    std::vector<float> a(65 * 40, 1.0F);
    a[5 * 40 + 7] = kNan;
    const std::vector<float> b(40 * 17, -1.0F);
    const std::vector<float> bias(17, 0.5F);
    std::vector<float> c(65 * 17, -7.0F);
    ASSERT_TRUE(gemm.Run(65, 17, 40, a.data(), b.data(), bias.data(), c.data()).ok());
    for (size_t i = 0; i < c.size(); ++i) {
      if (i / 17 == 5) {
        ASSERT_TRUE(std::isnan(c[i])) << i;
      } else {
        ASSERT_EQ(c[i], 0.0F) << i;
      }
    }
    const std::vector<float> nans(17, kNan);
    ASSERT_TRUE(gemm.Run(2, 17, 0, a.data(), b.data(), nans.data(), c.data()).ok());
    EXPECT_TRUE(std::isnan(c[33]));
  }
}

TEST(Gemm, ASmallProductAllocatesNothingAtAll) {
  Gemm gemm(GemmSpec{.transpose_b = true, .bias = true, .relu = true});
  const std::vector<float> a = Random(20 * 16, 1);
  std::vector<float> c(20 * 20);
  const AllocationCounter counter;
  EXPECT_TRUE(gemm.Run(20, 20, 16, a.data(), a.data(), a.data(), c.data()).ok());
  EXPECT_EQ(counter.count(), 0);
}

/// Rows of a product with its inner sizes, by as many rows at a time.
std::vector<float> InParts(Gemm& gemm, int64_t rows, int64_t together, int64_t n, int64_t k,
                           const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(static_cast<size_t>(rows * n));
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t m = std::min(together, rows - row);
    EXPECT_TRUE(gemm.Run(m, n, k, a.data() + row * k, b.data(), b.data(), c.data() + row * n).ok());
  }
  return c;
}

TEST(BatchInvariantGemm, GivesARowTheSameBitsInEveryBatch) {
  constexpr int64_t kRows = 200;
  for (const bool transpose_b : {false, true}) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 40}, {17, 130}, {400, 429}, {64, 7}}) {
      const std::vector<float> a = Random(kRows * k, 1);
      const std::vector<float> b = Random(k * n, 2);
      PackedWeights weights;
      const GemmSpec spec{
          .transpose_b = transpose_b, .bias = true, .relu = true, .bf16 = true, .batch_invariant = true};
      GemmSpec known = spec;
      known.weights = &weights;
      Gemm by_itself(spec);
      Gemm with_weights(known);
      const std::vector<float> whole = InParts(by_itself, kRows, kRows, n, k, a, b);
      for (const int64_t together : {1, 2, 3, 7, 31, 32, 64, 150, 200}) {
        EXPECT_EQ(InParts(by_itself, kRows, together, n, k, a, b), whole) << n << "x" << k << " by " << together;
        EXPECT_EQ(InParts(with_weights, kRows, together, n, k, a, b), whole) << n << "x" << k << " by " << together;
      }
    }
  }
}

TEST(BatchInvariantGemm, PacksParametersAgainOnceTheyMayHaveChanged) {
  PackedWeights weights;
  Gemm gemm({.batch_invariant = true, .weights = &weights});
  std::vector<float> b = {1, 2, 3, 4};
  const std::vector<float> a = {1, 1};
  std::vector<float> c(2);
  ASSERT_TRUE(gemm.Run(1, 2, 2, a.data(), b.data(), nullptr, c.data()).ok());
  EXPECT_EQ(c, std::vector<float>({4, 6}));
  b = {5, 6, 7, 8};
  ASSERT_TRUE(gemm.Run(1, 2, 2, a.data(), b.data(), nullptr, c.data()).ok());
  EXPECT_EQ(c, std::vector<float>({4, 6}));
  weights.Renew();
  ASSERT_TRUE(gemm.Run(1, 2, 2, a.data(), b.data(), nullptr, c.data()).ok());
  EXPECT_EQ(c, std::vector<float>({12, 14}));
}

TEST(BatchInvariantGemm, AllocatesNothingOnceItHasSeenTheLargestMatrix) {
  PackedWeights weights;
  Gemm gemm({.bias = true, .batch_invariant = true});
  Gemm of_weights({.bias = true, .batch_invariant = true, .weights = &weights});
  const std::vector<float> a = Random(300 * 300, 1);
  std::vector<float> c(300 * 300);
  const auto run = [&](int64_t m, int64_t n) {
    const AllocationCounter counter;
    EXPECT_TRUE(gemm.Run(m, n, 300, a.data(), a.data(), a.data(), c.data()).ok());
    EXPECT_TRUE(of_weights.Run(m, 300, 300, a.data(), a.data(), a.data(), c.data()).ok());
    return counter.count();
  };
  run(300, 300);
  for (const int64_t m : {1, 20, 100, 300}) EXPECT_EQ(run(m, 300), 0) << m;
  EXPECT_EQ(run(20, 250), 0);
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

/// Makes plans of every form in a process that may take `room` bytes more; ends it with 0, with 1 when memory was said
/// to be out, or with 2.
[[noreturn]] void MultiplyWithin(size_t room) {
  constexpr int64_t kSize = 600;
  const std::vector<float> a = Random(kSize * kSize, 1);
  std::vector<float> c(a.size());
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + room;
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
  try {
    for (int form = 0; form < 16; ++form) {
      Gemm gemm({.transpose_a = (form & 1) != 0,
                 .transpose_b = (form & 2) != 0,
                 .bias = (form & 4) != 0,
                 .bf16 = (form & 8) != 0});
      const Status status = gemm.Run(kSize, kSize, kSize, a.data(), a.data(), a.data(), c.data());
      if (!status.ok()) _exit(status.code() == StatusCode::kUnavailable ? 1 : 2);
    }
  } catch (const std::bad_alloc&) {
    _exit(1);
  }
  _exit(0);
}

// Where oneDNN gets no memory for its code it writes to nowhere: a signal, of a worker that the limit stops at any
// place.
TEST(Gemm, MemoryThatRunsOutIsAStatusNotASignal) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers take address space of their own";
  const auto end_within = [](size_t room) {
    const pid_t child = fork();
    if (child == 0) MultiplyWithin(room);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  };
  for (size_t room = 0; room < size_t{32} << 20; room += size_t{1} << 20) EXPECT_LE(end_within(room), 1) << room;
  EXPECT_EQ(end_within(0), 1);
  EXPECT_EQ(end_within(size_t{512} << 20), 0);
}

TEST(FcGradient, KeepsNanAtEveryLevel) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> out = {1, 0, kNan, 2, 0, 1, 0, kNan, 1, 0, 0};
  const std::vector<float> grad = {kNan, kNan, 1, 3, 3, 1, 1, kNan, 1, 1, 1};
  for (const SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    if (level > DetectSimdLevel()) continue;
    std::vector<float> to(11);
    std::vector<float> sums(11);
    FcGradientAt(level).relu(out.data(), grad.data(), 1, 11, to.data(), sums.data());
    for (const size_t i : {size_t{0}, size_t{2}, size_t{7}}) {
      EXPECT_TRUE(std::isnan(to[i]) && std::isnan(sums[i])) << SimdLevelName(level) << " " << i;
    }
    EXPECT_EQ(to[1], 0) << SimdLevelName(level);
    EXPECT_EQ(to[3], 3) << SimdLevelName(level);
    EXPECT_EQ(to[4], 0) << SimdLevelName(level);
  }
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
