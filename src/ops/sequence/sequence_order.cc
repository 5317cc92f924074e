#include <algorithm>

#include "ops/number_types.h"
#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

Status InferReverse(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(ExpectSequences(context, "X", x));
  context.SetOutput("Y", x);
  return Status::Ok();
}

class ReverseKernel : public BoundKernel<ReverseKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.Output("Y"));
    name_ = context.InputName("X");
    return x_ == y_ ? InvalidConfig("sequence_reverse: Y must be another variable than X") : Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckSequences(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const int64_t width = RowWidth(*x_);
    WithNumber(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = x_->data<T>();
      T* y = ResizeLikeIn<T>(*x_, y_);
      for (size_t i = 0; i + 1 < lod.size(); ++i) {
        for (int64_t row = lod[i + 1]; row > lod[i]; --row) y = std::copy_n(x + (row - 1) * width, width, y);
      }
    });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* y_ = nullptr;
  std::string name_;
};

/// The gradient is reversed back.
std::vector<OpDesc> ReverseGrad(const GradContext& context) {
  if (!context.Has("Y") || !context.Wants("X")) return {};
  const OpDesc names = context.GradOp({}, {}, {"Y"}, {"X"});
  OpDesc grad;
  grad.set_type("sequence_reverse");
  SetInput(grad, "X", InputArguments(names, "Y@GRAD"));
  SetOutput(grad, "Y", OutputArguments(names, "X@GRAD"));
  return {grad};
}

Status InferSequenceSlice(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(ExpectSequences(context, "X", x));
  for (const char* name : {"Offset", "Length"}) {
    MR_ASSIGN(const VarMeta numbers, context.Input(name));
    MR_TRY(ExpectDType(context, name, numbers, DType::kInt64));
  }
  x.dims.set(0, -1);
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// Forward without Out@GRAD, backward with it.
class SequenceSliceKernel : public BoundKernel<SequenceSliceKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(offset_, context.Input("Offset"));
    MR_ASSIGN(length_, context.Input("Length"));
    MR_ASSIGN(out_grad_, GradInput::BindOptional(context, "Out@GRAD"));
    MR_ASSIGN(target_, context.Output(out_grad_.bound() ? "X@GRAD" : "Out"));
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_TRY(FindPieces(context));
    const int64_t width = RowWidth(*x_);
    const int64_t* length = length_->data<int64_t>();
    if (!out_grad_.bound()) {
      WithNumber(x_->dtype(), [&](auto sample) {
        using T = decltype(sample);
        const T* x = x_->data<T>();
        T* out = target_->Resize<T>(WithRows(x_->dims(), lod_.back()));
        for (size_t i = 0; i < begins_.size(); ++i) out = std::copy_n(x + begins_[i] * width, length[i] * width, out);
      });
      target_->set_lod(lod_);
      return Status::Ok();
    }
    MR_ASSIGN(const float* grad, out_grad_.Read(lod_.back() * width));
    float* x_grad = ResizeLike(*x_, target_);
    std::fill_n(x_grad, x_->numel(), 0.0F);
    for (size_t i = 0; i < begins_.size(); ++i) {
      std::copy_n(grad, length[i] * width, x_grad + begins_[i] * width);
      grad += length[i] * width;
    }
    return Status::Ok();
  }

 private:
  Status FindPieces(const RunContext& context) {
    MR_TRY(CheckSequences(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const size_t sequences = lod.size() - 1;
    if (offset_->numel() != static_cast<int64_t>(sequences) || length_->numel() != offset_->numel()) {
      return BadData("Offset and Length must have a number for each of " + std::to_string(sequences) + " sequences");
    }
    lod_.assign(1, 0);
    begins_.clear();
    const int64_t* offsets = offset_->data<int64_t>();
    const int64_t* lengths = length_->data<int64_t>();
    for (size_t i = 0; i < sequences; ++i) {
      const int64_t offset = offsets[i];
      const int64_t length = lengths[i];
      const int64_t has = lod[i + 1] - lod[i];
      if (offset < 0 || length < 0 || offset > has || length > has - offset) {
        return BadData("the sequence of \"" + name_ + "\" of " + context.DescribeRow(static_cast<int>(i)) + " has " +
                       std::to_string(has) + " rows, not " + std::to_string(length) + " from " +
                       std::to_string(offset));
      }
      begins_.push_back(lod[i] + offset);
      lod_.push_back(lod_.back() + static_cast<uint32_t>(length));
    }
    return Status::Ok();
  }

  const Tensor* x_ = nullptr;
  const Tensor* offset_ = nullptr;
  const Tensor* length_ = nullptr;
  GradInput out_grad_;
  Tensor* target_ = nullptr;
  std::vector<int64_t> begins_;
  std::vector<uint32_t> lod_;
  std::string name_;
};

}  // namespace

void RegisterSequenceOrder(OpRegistry& registry) {
  registry.Add("sequence_reverse")
      .Apart()
      .Doc("The rows of each sequence from the last to the first.")
      .Input("X", "float32, int64 or int32 [values, ...] with LoD")
      .Output("Y", "like X")
      .InferShape(InferReverse)
      .Grad(ReverseGrad)
      .Kernel<ReverseKernel>();
  registry.Add("sequence_slice")
      .Apart()
      .Doc("A piece of each sequence.")
      .Input("X", "float32, int64 or int32 [values, ...] with LoD")
      .Input("Offset", "int64 [sequences, 1], where each piece begins")
      .Input("Length", "int64 [sequences, 1], how long it is")
      .Output("Out", "[values, ...] with LoD")
      .InferShape(InferSequenceSlice)
      .Grad({.inputs = {"X", "Offset", "Length"}})
      .Kernel<SequenceSliceKernel>();
  registry.AddGradient("sequence_slice").Kernel<SequenceSliceKernel>();
}

}  // namespace millrace
