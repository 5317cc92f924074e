#include <gtest/gtest.h>

#include <cmath>

#include "ops/golden_file.h"

namespace millrace {
namespace {

class GoldenTest : public testing::TestWithParam<std::string> {};

/// What Paddle's operator answers, ours answers.
TEST_P(GoldenTest, AgreesWithPaddle) {
  for (const GoldenCase& c : ReadGolden(GetParam())) {
    SCOPED_TRACE(c.title);
    VarMetas inputs;
    for (const GoldenValue& value : c.steps[0]) inputs[value.name] = value.meta;
    auto session = OpSession::Create({c.op}, inputs, AllOps());
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    for (const std::vector<GoldenValue>& step : c.steps) {
      for (const GoldenValue& value : step) Put(value, **session);
      const Status status = (*session)->Run();
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    ASSERT_FALSE(c.expected.empty());
    // 1 - beta2^t loses four digits in float, in one way here and in another there.
    const double tolerance = c.op.type().ends_with("adam") ? 1e-5 : 2e-6;
    for (const GoldenValue& expected : c.expected) {
      const Tensor& out = *(*session)->tensor(expected.name);
      const std::vector<double> values = ValuesOf(out);
      ASSERT_EQ(values.size(), expected.values.size()) << expected.name << " " << out.dims().ToString();
      // Of one value Paddle 2.6 says [], Paddle 1 and we [1].
      EXPECT_TRUE(out.numel() == 1 || out.dims() == expected.meta.dims)
          << expected.name << " " << out.dims().ToString();
      for (size_t i = 0; i < values.size(); ++i) {
        const double wanted = expected.values[i];
        ASSERT_NEAR(values[i], wanted, tolerance * std::max(1.0, std::abs(wanted))) << expected.name << "[" << i << "]";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, GoldenTest, testing::ValuesIn(OpsWithGolden()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace millrace
