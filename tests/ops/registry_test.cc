#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "ops/builtin_ops.h"
#include "ops/golden_file.h"
#include "ops/op_cases.h"
#include "paths.h"
#include "program/op_registry.h"

namespace millrace {
namespace {

TEST(BuiltinOps, AreCompleteAndUnique) {
  OpRegistry registry;
  RegisterBuiltinOps(registry);
  const Status status = registry.Seal();
  EXPECT_TRUE(status.ok()) << status.ToString();
}

/// A gradient is an operator that the registry knows, by the name that GradContext::GradOp gives it.
TEST(BuiltinOps, GradientsAreMarkedAsSuch) {
  OpRegistry registry;
  RegisterBuiltinOps(registry);
  for (const OpInfo* info : registry.all()) {
    const bool named = info->type.ends_with("_grad") || info->type == "cross_entropy_grad2";  // Paddle's name
    EXPECT_EQ(named, info->is_gradient) << info->type;
  }
}

/// An operator without a golden case, or a differentiable one without a gradient case, is not finished.
TEST(BuiltinOps, AllHaveCases) {
  OpRegistry registry;
  RegisterBuiltinOps(registry);
  for (const OpInfo* info : registry.all()) {
    if (info->is_gradient) continue;  // checked by the case of its forward operator
    const auto& elsewhere = TestedElsewhere();
    const auto other =
        std::find_if(elsewhere.begin(), elsewhere.end(), [&](const auto& test) { return test.first == info->type; });
    if (other == elsewhere.end()) {
      EXPECT_FALSE(ReadGolden(info->type).empty())
          << info->type << " has no golden case: add one to scripts/golden/ops.py";
    } else {
      std::ifstream file(SourceDir() + "/" + other->second);
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      // By its type in quotes; of one that has a golden case the gradient's may be enough.
      const std::string of_gradient = ReadGolden(info->type).empty() ? "" : "(_grad)?";
      EXPECT_TRUE(std::regex_search(text, std::regex('"' + info->type + of_gradient + R"(\\?")")))
          << other->second << " does not test " << info->type;
    }
    if (info->grad == nullptr || other != elsewhere.end()) continue;
    const bool found =
        std::any_of(OpCases().begin(), OpCases().end(), [&](const OpCase& c) { return c.op == info->type; });
    EXPECT_TRUE(found) << info->type << " has no gradient case: add one to tests/ops/op_cases.cc";
  }
}

}  // namespace
}  // namespace millrace
