// Gradients of whole models against finite differences of their loss, fused and operator by operator.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "click_batches.h"
#include "model_run.h"

namespace millrace {
namespace {

constexpr int kRows = 24;

struct GradientCase {
  const char* name;
  const char* model;
  std::vector<const char*> parameters;
};

// Tables have a vocabulary here, so that their rows can be read and changed; sigmoid and tanh rather than relu, whose
// kinks finite differences cannot follow.
const GradientCase kCases[] = {
    {"Fm",
     "table { name: 'v' dim: 3 vocabulary: 1001 init { normal: 0.3 } } "
     "layer { name: 'e' embedding { slots: 'C1..C4' table: 'v' } } layer { name: 'f' fm { in: 'e' } } "
     "layer { name: 'd' fc { in: 'dense' units: 1 } } layer { name: 'y' add { in: ['f', 'd'] } } "
     "loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd {} }",
     {"v", "d.w_0", "d.b_0"}},
    {"Cross",
     "table { name: 'v' dim: 2 vocabulary: 1001 init { normal: 0.3 } } "
     "layer { name: 'e' embedding { slots: 'C1..C4' table: 'v' pool: AVERAGE } } "
     "layer { name: 'a' activation { in: 'dense' act: TANH } } "
     "layer { name: 'x' concat { in: ['a', 'e'] } } layer { name: 'c' cross { in: 'x' layers: 2 } } "
     "layer { name: 'y' fc { in: 'c' units: 1 act: SIGMOID } } "
     "loss { kind: LOG_LOSS in: 'y' label: 'label' l2: 0.01 } optimizer { sgd {} }",
     {"v", "c.w_0", "c.b_0", "c.w_1", "c.b_1", "y.w_0", "y.b_0"}},
    {"DeepOnClasses",
     "table { name: 'v' dim: 2 vocabulary: 1001 init { normal: 0.3 } } "
     "layer { name: 'e' embedding { slots: 'C1..C6' table: 'v' pool: SQRT } } "
     "layer { name: 'h' fc { in: ['e', 'dense'] units: [8, 6] act: TANH } } "
     "layer { name: 'y' fc { in: ['h', 'e'] units: 2 act: SOFTMAX } } "
     "loss { kind: CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd {} }",
     {"v", "h.w_0", "h.b_0", "h.w_1", "y.w_0", "y.b_0"}},
    {"LogitsOfClasses",
     "layer { name: 'h' fc { in: 'dense' units: 4 act: SIGMOID } } layer { name: 'y' fc { in: 'h' units: 3 } } "
     "loss { kind: SOFTMAX_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd {} }",
     {"h.w_0", "h.b_0", "y.w_0"}},
    {"EinsumLayerOfTwo",
     "table { name: 'v' dim: 3 vocabulary: 1001 init { normal: 0.5 } } "
     "layer { name: 'e' embedding { slots: 'C1' table: 'v' } } layer { name: 'h' fc { in: 'dense' units: 3 act: TANH } "
     "} "
     "layer { name: 'p' op { type: 'einsum' inputs { name: 'Operands' vars: 'e' vars: 'h' } "
     "attrs { name: 'equation' s: 'bi,bi->b' } } } "
     "layer { name: 'y' op { type: 'unsqueeze2' inputs { name: 'X' vars: 'p' } attrs { name: 'axes' ints: 1 } } } "
     "loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd {} }",
     {"v", "h.w_0", "h.b_0"}},
    {"EinsumLayerOfOneTwice",
     "layer { name: 'h' fc { in: 'dense' units: 3 act: TANH } } "
     "layer { name: 'p' op { type: 'einsum' inputs { name: 'Operands' vars: 'h' vars: 'h' } "
     "attrs { name: 'equation' s: 'bi,bi->b' } } } "
     "layer { name: 'y' op { type: 'unsqueeze2' inputs { name: 'X' vars: 'p' } attrs { name: 'axes' ints: 1 } } } "
     "loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd {} }",
     {"h.w_0", "h.b_0"}},
    {"Regression",
     "layer { name: 'a' activation { in: 'dense' act: TANH } } layer { name: 'y' fc { in: 'a' units: 1 } } "
     "loss { kind: SQUARED_ERROR in: 'y' label: 'label' } optimizer { sgd {} }",
     {"y.w_0", "y.b_0"}},
};

// The places worth looking at: the largest gradients, where rounding matters least.
std::vector<size_t> Largest(const std::vector<float>& values, size_t count) {
  std::vector<size_t> places(values.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  count = std::min(count, places.size());
  std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count), places.end(),
                    [&](size_t a, size_t b) { return std::abs(values[a]) > std::abs(values[b]); });
  places.resize(count);
  return places;
}

class GradientTest : public ::testing::TestWithParam<std::tuple<GradientCase, bool>> {};

TEST_P(GradientTest, EqualsFiniteDifferences) {
  const auto& [c, fuse] = GetParam();
  ModelDesc model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(c.model, &model));
  const SlotSchema schema = ClickSlots();
  const auto batches = ParseBatches(schema, ClickText(kRows), kRows);
  CompileOptions options;
  options.fuse = fuse;
  options.skip_ops = {"sgd"};  // parameters stay where they are
  for (const char* parameter : c.parameters) options.fetches.push_back(GradName(parameter));
  ModelRun run(model, schema, options);
  run.Train(*batches[0]);
  for (const char* name : c.parameters) {
    auto* parameter = run.root().Find(name)->GetMutable<Tensor>();
    run.Train(*batches[0]);
    const std::vector<float> gradient = run.Gradient(name);
    for (const size_t i : Largest(gradient, 6)) {
      const double numeric = run.NumericGradient(*batches[0], parameter->mutable_data<float>() + i);
      EXPECT_NEAR(gradient[i], numeric, 2e-3 * std::max(0.1, std::abs(numeric))) << name << "[" << i << "]";
    }
    EXPECT_GT(std::abs(gradient[Largest(gradient, 1)[0]]), 1e-4) << name << ": a gradient of zeros proves nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GradientTest, ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Bool()),
                         [](const auto& c) {
                           return std::string(std::get<0>(c.param).name) + (std::get<1>(c.param) ? "Fused" : "Plain");
                         });

}  // namespace
}  // namespace millrace
