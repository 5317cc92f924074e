#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/rng.h"
#include "ops/op_cases.h"
#include "ops/op_session.h"

namespace millrace {
namespace {

OpDesc ForwardOp(const OpCase& c) {
  OpDesc op;
  op.set_type(c.op);
  for (const CaseInput& input : c.inputs) {
    std::vector<std::string> names = InputArguments(op, input.parameter);
    names.push_back(input.name);
    SetInput(op, input.parameter, names);
  }
  for (const auto& [parameter, name] : c.outputs) {
    std::vector<std::string> names = OutputArguments(op, parameter);
    names.push_back(name);
    SetOutput(op, parameter, names);
  }
  for (const auto& [name, value] : c.attrs) SetAttr(op, name, value);
  return op;
}

DType TypeOf(Draw draw) {
  return draw == Draw::kClass ? DType::kInt64 : draw == Draw::kTruth ? DType::kBool : DType::kFloat32;
}

bool IsWanted(const CaseInput& input) { return input.differentiable && TypeOf(input.draw) == DType::kFloat32; }

VarMetas InputMetas(const OpCase& c) {
  VarMetas metas;
  for (const CaseInput& input : c.inputs) {
    VarMeta& meta = metas[input.name];
    meta.dims = Dims(input.shape);
    meta.dtype = TypeOf(input.draw);
    meta.lod_level = input.lod ? 1 : 0;
  }
  return metas;
}

float DrawFloat(Draw draw, Rng& rng) {
  const auto u = static_cast<float>(rng.Uniform());
  switch (draw) {
    case Draw::kPositive: return 0.2F + 0.8F * u;
    case Draw::kOffZero: return (rng.Below(2) == 0 ? -1.0F : 1.0F) * (0.1F + u);
    case Draw::kBinary: return rng.Below(2) == 0 ? 0.0F : 1.0F;
    case Draw::kSimplex: return 0.2F + u;
    default: return 2 * u - 1;
  }
}

/// Fills an input for a batch of `rows` in every session alike.
void Fill(const CaseInput& input, int64_t rows, Rng& rng, const std::vector<OpSession*>& sessions) {
  Dims dims(input.shape);
  std::vector<uint32_t> lod;
  if (input.lod) {
    lod = {0};
    for (int64_t i = 0; i < rows; ++i)
      lod.push_back(lod.back() + input.least + static_cast<uint32_t>(rng.Below(5 - input.least)));
  }
  for (int axis = 0; axis < dims.rank(); ++axis) {
    if (dims[axis] < 0) dims.set(axis, input.lod ? static_cast<int64_t>(lod.back()) : rows);
  }
  const int64_t count = dims.numel();
  std::vector<float> floats(static_cast<size_t>(count));
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (float& value : floats) value = DrawFloat(input.draw, rng);
  for (int64_t& id : ids)
    id = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(std::max<int64_t>(input.classes, 1))));
  if (input.draw == Draw::kDistinct) {
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = 0.05F * static_cast<float>(i) - 1;
    for (size_t i = floats.size(); i > 1; --i) std::swap(floats[i - 1], floats[rng.Below(i)]);
  }
  if (input.draw == Draw::kSimplex) {
    const int64_t width = dims[-1];
    for (int64_t r = 0; r < count; r += width) {
      const float sum = std::accumulate(floats.begin() + r, floats.begin() + r + width, 0.0F);
      std::for_each(floats.begin() + r, floats.begin() + r + width, [&](float& v) { v /= sum; });
    }
  }
  for (OpSession* session : sessions) {
    Tensor* tensor = session->tensor(input.name);
    if (TypeOf(input.draw) == DType::kInt64) {
      std::copy(ids.begin(), ids.end(), tensor->Resize<int64_t>(dims));
    } else if (TypeOf(input.draw) == DType::kBool) {
      std::transform(floats.begin(), floats.end(), tensor->Resize<bool>(dims), [](float value) { return value > 0; });
    } else {
      std::copy(floats.begin(), floats.end(), tensor->Resize<float>(dims));
    }
    if (input.lod) session->SetLod(input.name, lod);
  }
}

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
    const OpInfo* info = Registry().Find(case_.op);
    ASSERT_NE(info, nullptr) << case_.op;
    ASSERT_NE(info->grad, nullptr) << case_.op << " has no gradient";
    std::map<std::string, bool, std::less<>> wanted;
    std::map<std::string, bool, std::less<>> have;
    for (const CaseInput& input : case_.inputs) wanted[input.name] = IsWanted(input);
    for (const std::string& name : case_.objective) have[name] = true;
    const OpView view(forward_op_, *info);
    std::vector<OpDesc> ops = info->grad(GradContext(view, wanted, have));
    ASSERT_FALSE(ops.empty());
    ops.insert(ops.begin(), forward_op_);
    VarMetas metas = InputMetas(case_);
    auto forward = OpSession::Create({forward_op_}, metas, Registry());
    ASSERT_TRUE(forward.ok()) << forward.status().ToString();
    forward_ = std::move(*forward);
    for (const std::string& name : case_.objective) {
      // Of every shape: the rank is that of the forward run.
      metas[GradName(name)] = ObjectiveMeta(name);
    }
    auto both = OpSession::Create(ops, metas, Registry());
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
