#include <algorithm>
#include <numeric>

#include "ops/kernel.h"
#include "ops/scalar_input.h"

namespace millrace {
namespace {

struct Rule {
  int64_t k = 1;
  bool largest = true;

  static Rule Of(const OpView& op) {
    const bool second = op.type() == "top_k_v2";
    return {op.Int("k"), !second || op.Bool("largest")};
  }
};

Status InferTopK(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (context.op().type() == "top_k_v2") {
    MR_ASSIGN(const int axis, FrontAxis(context, context.op().Int("axis"), x.dims.rank()));
    if (axis != x.dims.rank() - 1) return context.Error("only the last axis is supported");
  }
  const bool is_told = !context.HasInput("K");
  const int64_t k = is_told ? Rule::Of(context.op()).k : -1;
  if (x.dims.rank() == 0 || (is_told && (k < 1 || (x.dims[-1] >= 0 && k > x.dims[-1])))) {
    return context.Error("k = " + std::to_string(k) + " of X " +
                         Shown(InputArguments(context.op().desc(), "X")[0], x.dims));
  }
  x.dims.set(-1, k);
  context.SetOutput("Out", x);
  x.dtype = DType::kInt64;
  context.SetOutput("Indices", x);
  return Status::Ok();
}

class TopKKernel : public BoundKernel<TopKKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(indices_, context.Output("Indices"));
    rule_ = Rule::Of(context.op());
    MR_ASSIGN(k_, ScalarInput::Bind(context, "K", static_cast<double>(rule_.k)));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const double k, k_.Read());
    rule_.k = ConvertValue<int64_t>(k);
    Dims dims = x_->dims();
    const int64_t width = dims[-1];
    const int64_t rows = dims.Product(0, dims.rank() - 1);
    if (rule_.k < 1 || rule_.k > width) return BadData("k = " + std::to_string(rule_.k) + " of X " + dims.ToString());
    dims.set(-1, rule_.k);
    const float* x = x_->data<float>();
    float* out = out_->Resize<float>(dims);
    int64_t* indices = indices_->Resize<int64_t>(dims);
    order_.resize(static_cast<size_t>(width));
    for (int64_t i = 0; i < rows; ++i, x += width, out += rule_.k, indices += rule_.k) {
      std::iota(order_.begin(), order_.end(), int64_t{0});
      // Of equal values the first goes first.
      std::partial_sort(order_.begin(), order_.begin() + rule_.k, order_.end(), [&](int64_t a, int64_t b) {
        if (x[a] != x[b]) return rule_.largest ? x[a] > x[b] : x[a] < x[b];
        return a < b;
      });
      for (int64_t j = 0; j < rule_.k; ++j) {
        indices[j] = order_[static_cast<size_t>(j)];
        out[j] = x[indices[j]];
      }
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  Tensor* indices_ = nullptr;
  Rule rule_;
  ScalarInput k_;
  std::vector<int64_t> order_;
};

OpBuilder AddArguments(OpBuilder op) {
  return op.Doc("The k largest values of each row, in order, and where they stand.")
      .Input("X", "[..., width]")
      .OptionalInput("K", "[1], instead of k")
      .Output("Out", "[..., k]")
      .Output("Indices", "int64 [..., k]")
      .Attr("k", int64_t{1}, "how many")
      .InferShape(InferTopK);
}

}  // namespace

void RegisterTopK(OpRegistry& registry) {
  AddArguments(registry.Add("top_k")).Kernel<TopKKernel>();
  AddArguments(registry.Add("top_k_v2"))
      .Attr("axis", int64_t{-1}, "the last axis")
      .Attr("largest", true, "false: the k smallest")
      .Attr("sorted", true, "always so")
      .Kernel<TopKKernel>();
}

}  // namespace millrace
