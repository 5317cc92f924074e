#include <algorithm>

#include "ops/number_types.h"
#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

Status InferSequenceReshape(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(ExpectSequences(context, "X", x));
  const int64_t width = context.op().Int("new_dim");
  if (width < 1 || x.dims.rank() != 2) {
    return context.Error("new_dim is " + std::to_string(width) + ", X " + x.dims.ToString());
  }
  x.dims = Dims{-1, width};
  context.SetOutput("Out", x);
  return Status::Ok();
}

class SequenceReshapeKernel : public BoundKernel<SequenceReshapeKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    width_ = context.op().Int("new_dim");
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_TRY(CheckSequences(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const int64_t old = RowWidth(*x_);
    lod_.assign(1, 0);
    for (size_t i = 0; i + 1 < lod.size(); ++i) {
      const int64_t values = (lod[i + 1] - lod[i]) * old;
      if (values % width_ != 0) {
        return BadData("the sequence of \"" + name_ + "\" of " + context.DescribeRow(static_cast<int>(i)) + " has " +
                       std::to_string(values) + " values, which are no rows of " + std::to_string(width_));
      }
      lod_.push_back(lod_.back() + static_cast<uint32_t>(values / width_));
    }
    out_->ViewOf(*x_, {lod_.back(), width_});
    out_->set_lod(lod_);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  int64_t width_ = 1;
  std::vector<uint32_t> lod_;
  std::string name_;
};

Status InferEnumerate(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kInt64));
  MR_TRY(ExpectSequences(context, "X", x));
  const int64_t window = context.op().Int("win_size");
  if (window < 1) return context.Error("win_size is " + std::to_string(window));
  x.dims = Dims{x.dims.rank() == 0 ? -1 : x.dims[0], window};
  context.SetOutput("Out", x);
  return Status::Ok();
}

class EnumerateKernel : public BoundKernel<EnumerateKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    window_ = context.op().Int("win_size");
    pad_ = context.op().Int("pad_value");
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckSequences(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const int64_t* x = x_->data<int64_t>();
    int64_t* out = out_->Resize<int64_t>({x_->numel(), window_});
    out_->set_lod(lod);
    for (size_t i = 0; i + 1 < lod.size(); ++i) {
      for (int64_t row = lod[i]; row < lod[i + 1]; ++row) {
        for (int64_t j = 0; j < window_; ++j) *out++ = row + j < lod[i + 1] ? x[row + j] : pad_;
      }
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  int64_t window_ = 1;
  int64_t pad_ = 0;
  std::string name_;
};

}  // namespace

void RegisterSequenceReshape(OpRegistry& registry) {
  registry.Add("sequence_reshape")
      .Doc("The values of each sequence in rows of another width.")
      .Input("X", "float32, int64 or int32 [values, width] with LoD")
      .Output("Out", "[..., new_dim] with LoD; the values are not copied")
      .Attr("new_dim", int64_t{1}, "width of Out; divides the values of every sequence")
      .InferShape(InferSequenceReshape)
      .Grad({.inputs = {"X"}})
      .Kernel<SequenceReshapeKernel>();
  registry.AddGradient("sequence_reshape").Kernel<SequenceViewGradKernel>();
  registry.Add("sequence_enumerate")
      .Apart()
      .Doc("Each id with those that follow it in its sequence.")
      .Input("X", "int64 [values, 1] with LoD")
      .Output("Out", "[values, win_size] with LoD")
      .Attr("win_size", int64_t{2}, "ids in a row")
      .Attr("pad_value", int64_t{0}, "what stands behind the end of a sequence")
      .InferShape(InferEnumerate)
      .Kernel<EnumerateKernel>();
}

}  // namespace millrace
