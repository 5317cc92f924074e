#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/op_case_inputs.h"

namespace millrace {
namespace {

/// A forward session for differences, and one with the gradient's operators behind the forward one.
class GradientCheck {
 public:
  explicit GradientCheck(const OpCase& c) : case_(c), forward_op_(ForwardOp(c)) {}

  void Run() {
    Build();
    if (testing::Test::HasFatalFailure()) return;
    // A small batch, one row, the largest, and a small one again over what the largest left behind.
    for (const int64_t rows : {int64_t{4}, int64_t{1}, int64_t{9}, int64_t{3}}) {
      SCOPED_TRACE("rows " + std::to_string(rows));
      CheckBatch(rows);
      if (testing::Test::HasFailure()) return;
    }
  }

 private:
  void Build() {
    std::vector<OpDesc> ops = GradientOps(case_);
    ASSERT_FALSE(ops.empty()) << case_.op << " has no gradient";
    ops.insert(ops.begin(), forward_op_);
    VarMetas metas = InputMetas(case_);
    auto forward = OpSession::Create({forward_op_}, metas, AllOps());
    ASSERT_TRUE(forward.ok()) << forward.status().ToString();
    forward_ = std::move(*forward);
    for (const std::string& name : case_.objective) {
      // Of every shape: the rank is that of the forward run.
      metas[GradName(name)] = ObjectiveMeta(name);
    }
    auto both = OpSession::Create(ops, metas, AllOps());
    ASSERT_TRUE(both.ok()) << both.status().ToString();
    both_ = std::move(*both);
  }

  VarMeta ObjectiveMeta(const std::string& name) {
    Rng rng(1);
    for (const CaseInput& input : case_.inputs) Fill(input, 2, rng, {forward_.get()});
    EXPECT_TRUE(forward_->Run().ok());
    VarMeta meta;
    for (const int64_t size : forward_->tensor(name)->dims().sizes()) meta.dims.push_back(size);
    meta.dims.set(0, -1);
    meta.lod_level = forward_->tensor(name)->has_lod() ? 1 : 0;
    return meta;
  }

  double Objective() {
    const Status status = forward_->Run();
    EXPECT_TRUE(status.ok()) << status.ToString();
    double sum = 0;
    for (const std::string& name : case_.objective) {
      const Tensor& out = *forward_->tensor(name);
      for (int64_t i = 0; i < out.numel(); ++i) {
        sum += static_cast<double>(out.data<float>()[i]) * static_cast<double>(weights_[name][static_cast<size_t>(i)]);
      }
    }
    return sum;
  }

  void CheckBatch(int64_t rows) {
    Rng rng(static_cast<uint64_t>(rows) * 7919);
    for (const CaseInput& input : case_.inputs) Fill(input, rows, rng, {forward_.get(), both_.get()});
    ASSERT_TRUE(forward_->Run().ok());
    for (const std::string& name : case_.objective) {
      const Tensor& out = *forward_->tensor(name);
      std::vector<float>& weights = weights_[name];
      weights.resize(static_cast<size_t>(out.numel()));
      for (float& weight : weights) weight = DrawFloat(Draw::kOffZero, rng);
      std::copy(weights.begin(), weights.end(), both_->tensor(GradName(name))->Resize<float>(out.dims()));
      if (out.has_lod()) both_->SetLod(GradName(name), {out.lod().begin(), out.lod().end()});
    }
    const Status status = both_->Run();
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (const CaseInput& input : case_.inputs) {
      if (IsWanted(input)) CheckInput(input, rng);
    }
  }

  /// The gradient as a tensor's values, a sparse one spread out.
  std::vector<float> Gradient(const CaseInput& input) {
    const Tensor& x = *both_->tensor(input.name);
    std::vector<float> gradient(static_cast<size_t>(x.numel()));
    const std::string name = GradName(input.name);
    if (!both_->is_rows(name)) {
      const Tensor& grad = *both_->tensor(name);
      EXPECT_EQ(grad.dims(), x.dims()) << name << " " << grad.dims().ToString();
      if (grad.numel() == x.numel()) std::copy_n(grad.data<float>(), grad.numel(), gradient.begin());
      return gradient;
    }
    const SelectedRows& grad = *both_->rows(name);
    const auto width = static_cast<size_t>(x.dims()[-1]);
    for (size_t r = 0; r < grad.rows.size(); ++r) {
      for (size_t j = 0; j < width; ++j) gradient[grad.rows[r] * width + j] += grad.values.data<float>()[r * width + j];
    }
    return gradient;
  }

  void CheckInput(const CaseInput& input, Rng& rng) {
    const std::vector<float> gradient = Gradient(input);
    float* x = forward_->tensor(input.name)->mutable_data<float>();
    const auto count = static_cast<uint64_t>(gradient.size());
    const uint64_t samples = std::min<uint64_t>(count, 16);
    for (uint64_t s = 0; s < samples; ++s) {
      const uint64_t i = samples == count ? s : rng.Below(count);
      const float before = x[i];
      constexpr float kStep = 1e-2F;
      x[i] = before + kStep;
      const double up = Objective();
      x[i] = before - kStep;
      const double down = Objective();
      x[i] = before;
      const double slope = (up - down) / (2 * static_cast<double>(kStep));
      const auto given = static_cast<double>(gradient[i]);
      const double tolerance = 5e-3 * std::max({1.0, std::abs(slope), std::abs(given)});
      ASSERT_NEAR(given, slope, tolerance) << input.name << "[" << i << "] = " << before;
    }
  }

  const OpCase& case_;
  OpDesc forward_op_;
  std::unique_ptr<OpSession> forward_;
  std::unique_ptr<OpSession> both_;
  std::map<std::string, std::vector<float>> weights_;
};

class GradientTest : public testing::TestWithParam<size_t> {};

TEST_P(GradientTest, EqualsFiniteDifferences) {
  const OpCase& c = OpCases()[GetParam()];
  SCOPED_TRACE(c.op + " " + c.title);
  GradientCheck(c).Run();
}

std::string CaseName(const testing::TestParamInfo<size_t>& test) {
  const OpCase& c = OpCases()[test.param];
  std::string name = c.op + "_" + c.title + "_" + std::to_string(test.param);
  std::replace_if(
      name.begin(), name.end(), [](char ch) { return std::isalnum(static_cast<unsigned char>(ch)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, testing::Range(size_t{0}, OpCases().size()), CaseName);

}  // namespace
}  // namespace millrace
