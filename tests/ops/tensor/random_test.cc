#include <gtest/gtest.h>

#include <cmath>

#include "ops/builtin_ops.h"
#include "ops/registry.h"
#include "ops/tensor/in_pieces.h"

namespace millrace {
namespace {

constexpr int64_t kCount = 40000;

std::vector<float> Draw(const std::string& type, const std::vector<std::pair<std::string, AttrValue>>& attrs,
                        uint64_t seed, const std::string& name = "out") {
  OpRegistry registry;
  RegisterBuiltinOps(registry);
  OpDesc op;
  op.set_type(type);
  SetOutput(op, "Out", {name});
  SetAttr(op, "shape", std::vector<int64_t>{kCount});
  for (const auto& [attr, value] : attrs) SetAttr(op, attr, value);
  FrameOptions options;
  options.seed = seed;
  auto session = OpSession::Create({op}, {}, registry, options);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  EXPECT_TRUE((*session)->Run().ok());
  const Tensor& out = *(*session)->tensor(name);
  return {out.data<float>(), out.data<float>() + out.numel()};
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  float least = 0;
  float most = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments m{0, 0, values[0], values[0]};
  for (const float v : values) {
    m.mean += static_cast<double>(v) / static_cast<double>(kCount);
    m.least = std::min(m.least, v);
    m.most = std::max(m.most, v);
  }
  for (const float v : values)
    m.deviation += std::pow(static_cast<double>(v) - m.mean, 2) / static_cast<double>(kCount);
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST(Random, UniformFillsItsRange) {
  const Moments m = MomentsOf(Draw("uniform_random", {{"min", -2.0F}, {"max", 4.0F}}, 1));
  EXPECT_NEAR(m.mean, 1, 0.05);
  EXPECT_NEAR(m.deviation, 6 / std::sqrt(12.0), 0.05);
  EXPECT_GE(m.least, -2);
  EXPECT_LT(m.most, 4);
}

TEST(Random, GaussianHasItsMoments) {
  const Moments m = MomentsOf(Draw("gaussian_random", {{"mean", 3.0F}, {"std", 0.5F}}, 1));
  EXPECT_NEAR(m.mean, 3, 0.02);
  EXPECT_NEAR(m.deviation, 0.5, 0.02);
  EXPECT_GT(m.most, 4.2F) << "more than two deviations must occur";
}

TEST(Random, TruncatedGaussianStaysWithinTwoDeviations) {
  const Moments m = MomentsOf(Draw("truncated_gaussian_random", {{"mean", 1.0F}, {"std", 2.0F}}, 1));
  EXPECT_NEAR(m.mean, 1, 0.05);
  EXPECT_NEAR(m.deviation, 2 * 0.8796, 0.05);
  EXPECT_GE(m.least, -3);
  EXPECT_LE(m.most, 5);
}

TEST(Random, DependsOnSeedAndNameAlone) {
  for (const char* type : {"uniform_random", "gaussian_random", "truncated_gaussian_random"}) {
    EXPECT_EQ(Draw(type, {}, 1), Draw(type, {}, 1)) << type;
    EXPECT_NE(Draw(type, {}, 1), Draw(type, {}, 2)) << type;
    EXPECT_NE(Draw(type, {}, 1, "a"), Draw(type, {}, 1, "b")) << type;
    EXPECT_EQ(Draw(type, {{"seed", int64_t{5}}}, 1), Draw(type, {{"seed", int64_t{5}}}, 2)) << type;
  }
}

TEST(InPieces, AStopEndsThemBeforeTrainingAndNotWithin) {
  constexpr int64_t kLarge = int64_t{10} << 22;
  for (const int64_t step : {0, 7}) {
    std::stop_source stop;
    RunContext context;
    context.step = step;
    context.stop = stop.get_token();
    int64_t filled = 0;
    const Status done = InPieces(context, kLarge, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin, filled);
      filled = end;
      stop.request_stop();
    });
    EXPECT_EQ(done.code(), step == 0 ? StatusCode::kCancelled : StatusCode::kOk);
    EXPECT_EQ(filled, step == 0 ? kLarge / 10 : kLarge);
  }
}

}  // namespace
}  // namespace millrace
