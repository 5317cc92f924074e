#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/op_case_inputs.h"

namespace millrace {
namespace {

/// Gradients that read nothing else with a size, or nothing that tells it: what arrives decides on X@GRAD.
bool DecidesItself(const std::vector<OpDesc>& gradient) {
  static const std::set<std::string> kTypes = {
      "ceil_grad",         "cumsum_grad",     "expand_as_v2_grad", "expand_grad",       "expand_v2_grad", "floor_grad",
      "label_smooth_grad", "round_grad",      "scatter_grad",      "sequence_pad_grad", "sign_grad",      "stack_grad",
      "tile_grad",         "transpose2_grad", "transpose_grad",    "tril_triu_grad",    "unstack_grad"};
  return std::any_of(gradient.begin(), gradient.end(), [](const OpDesc& op) { return kTypes.contains(op.type()); });
}

/// The operator of a case alone, or its gradient's, which read tensors of any size.
class WrongSizes {
 public:
  WrongSizes(const OpCase& c, std::vector<OpDesc> ops) : case_(c), ops_(std::move(ops)) {}

  void Run() {
    Build();
    if (testing::Test::HasFatalFailure() || tried_ == nullptr) return;
    for (const std::string& name : read_) {
      for (const Dims& dims : Others(tensors_.at(name)->dims())) TryWith(name, dims);
    }
  }

 private:
  void Build() {
    auto forward = OpSession::Create({ForwardOp(case_)}, InputMetas(case_), AllOps());
    ASSERT_TRUE(forward.ok()) << forward.status().ToString();
    forward_ = std::move(*forward);
    Rng rng(7);
    for (const CaseInput& input : case_.inputs) Fill(input, 3, rng, {forward_.get()});
    ASSERT_TRUE(forward_->Run().ok());
    VarMetas metas;
    for (const OpDesc& op : ops_) {
      for (const OpDesc::Var& input : op.inputs()) {
        for (const std::string& name : input.arguments()) {
          Describe(name, &metas);
          if (input.parameter().ends_with("@GRAD")) arriving_.insert(name);
        }
      }
    }
    // As little as a program can say of its variables; some operators must know more than the rank.
    auto tried = OpSession::Create(ops_, metas, AllOps());
    for (auto& [name, meta] : metas) {
      if (tried.ok()) break;
      for (int axis = 1; axis < meta.dims.rank(); ++axis) meta.dims.set(axis, tensors_.at(name)->dims()[axis]);
    }
    if (!tried.ok()) tried = OpSession::Create(ops_, metas, AllOps());
    if (!tried.ok()) {
      for (const auto& [name, meta] : InputMetas(case_)) {
        if (metas.contains(name)) metas[name] = meta;
        std::erase(read_, name);
      }
      tried = OpSession::Create(ops_, metas, AllOps());
    }
    ASSERT_TRUE(tried.ok()) << tried.status().ToString();
    tried_ = std::move(*tried);
    for (const auto& [name, tensor] : tensors_) Put(name, tensor->dims());
    const Status status = tried_->Run();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  /// A variable of the forward operator, or the gradient of its output, which has the output's sizes.
  void Describe(const std::string& name, VarMetas* metas) {
    const bool is_gradient = name.ends_with("@GRAD");
    const std::string of = is_gradient ? name.substr(0, name.size() - 5) : name;
    const bool is_known = std::any_of(case_.inputs.begin(), case_.inputs.end(),
                                      [&](const CaseInput& input) { return input.name == of; }) ||
                          std::any_of(case_.outputs.begin(), case_.outputs.end(),
                                      [&](const auto& output) { return output.second == of; });
    if (!is_known || !forward_->is_tensor(of) || metas->contains(name)) return;
    const Tensor* tensor = forward_->tensor(of);
    tensors_[name] = tensor;
    read_.push_back(name);
    VarMeta& meta = (*metas)[name];
    meta.dtype = tensor->dtype();
    meta.lod_level = tensor->has_lod() ? 1 : 0;
    for (int axis = 0; axis < tensor->dims().rank(); ++axis) meta.dims.push_back(-1);
  }

  /// The values of the forward run, as far as `dims` has room, then zeros; AddressSanitizer knows where they end.
  void Put(const std::string& name, const Dims& dims) {
    const Tensor& from = *tensors_.at(name);
    const size_t size = SizeOf(from.dtype());
    std::vector<char>& values = values_[name];
    values = std::vector<char>(static_cast<size_t>(dims.numel()) * size);
    const auto* kept = static_cast<const char*>(from.raw_data());
    if (!from.empty())
      std::copy_n(kept, std::min(values.size(), static_cast<size_t>(from.numel()) * size), values.data());
    tried_->tensor(name)->View(from.dtype(), dims, values.data());
    if (from.has_lod()) tried_->SetLod(name, {from.lod().begin(), from.lod().end()});
  }

  /// More and fewer along each axis, axes that there are not, as many values the other way round, one value, and none.
  static std::vector<Dims> Others(const Dims& dims) {
    std::vector<Dims> others = {{}, {1}, {dims.numel()}, {1, dims.numel()}};
    Dims reversed;
    for (int axis = 0; axis < dims.rank(); ++axis) {
      reversed.push_back(dims[dims.rank() - 1 - axis]);
      for (const int64_t size : {dims[axis] + 1, dims[axis] - 1, dims[axis] * 40, int64_t{0}}) {
        others.push_back(dims);
        others.back().set(axis, std::max<int64_t>(size, 0));
      }
    }
    others.push_back(reversed);
    return others;
  }

  void TryWith(const std::string& name, const Dims& dims) {
    SCOPED_TRACE("\"" + name + "\" " + dims.ToString() + " in place of " + tensors_.at(name)->dims().ToString());
    Put(name, dims);
    const Status status = tried_->Run();
    Put(name, tensors_.at(name)->dims());
    if (status.ok()) {
      EXPECT_TRUE(!arriving_.contains(name) || dims.numel() == tensors_.at(name)->numel() || DecidesItself(ops_))
          << "taken for what it is not";
      return;
    }
    EXPECT_TRUE(status.code() == StatusCode::kInvalidConfig || status.code() == StatusCode::kBadData)
        << status.ToString();
    EXPECT_THAT(status.message(), testing::HasSubstr(ops_.front().type()));
  }

  const OpCase& case_;
  std::vector<OpDesc> ops_;
  std::unique_ptr<OpSession> forward_;
  std::unique_ptr<OpSession> tried_;
  std::map<std::string, const Tensor*> tensors_;
  std::map<std::string, std::vector<char>> values_;
  std::vector<std::string> read_;
  std::set<std::string> arriving_;
};

class OperatorSizesTest : public testing::TestWithParam<size_t> {};

// Kernels read as many values as the forward operator would have had, of a tensor that had fewer.
TEST_P(OperatorSizesTest, GradientsRefuseWhatDoesNotFit) {
  const OpCase& c = OpCases()[GetParam()];
  SCOPED_TRACE(c.op + " " + c.title);
  WrongSizes(c, GradientOps(c)).Run();
}

// A parameter of which the program says the rank alone was read behind its end.
TEST_P(OperatorSizesTest, NothingReadsBehindTheEndOfWhatItIsGiven) {
  const OpCase& c = OpCases()[GetParam()];
  SCOPED_TRACE(c.op + " " + c.title);
  WrongSizes(c, {ForwardOp(c)}).Run();
}

std::string SizesCaseName(const testing::TestParamInfo<size_t>& test) {
  return OpCases()[test.param].op + "_" + std::to_string(test.param);
}

INSTANTIATE_TEST_SUITE_P(Ops, OperatorSizesTest, testing::Range(size_t{0}, OpCases().size()), SizesCaseName);

}  // namespace
}  // namespace millrace
