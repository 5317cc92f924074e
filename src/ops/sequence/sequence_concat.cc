#include <algorithm>

#include "ops/grad_input.h"
#include "ops/number_types.h"
#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

Status InferSequenceConcat(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs("X"));
  VarMeta out = metas[0];
  if (out.dims.rank() < 1) return context.Error("X has no rows");
  for (const VarMeta& meta : metas) {
    MR_TRY(ExpectNumbers(context, "X", meta));
    MR_TRY(ExpectDType(context, "X", meta, out.dtype));
    MR_TRY(ExpectSequences(context, "X", meta));
    if (!MayEqual(WithRows(meta.dims, -1), WithRows(out.dims, -1))) {
      return context.Error("rows differ: " + out.dims.ToString() + ", " + meta.dims.ToString());
    }
  }
  out.dims.set(0, -1);
  context.SetOutput("Out", out);
  return Status::Ok();
}

/// Calls body(input, first row, rows) for each piece of the result, in its order.
template <class Body>
void ForEachPiece(const std::vector<const Tensor*>& xs, const Body& body) {
  for (size_t i = 0; i + 1 < xs[0]->lod().size(); ++i) {
    for (size_t k = 0; k < xs.size(); ++k) body(k, xs[k]->lod()[i], xs[k]->lod()[i + 1] - xs[k]->lod()[i]);
  }
}

class SequenceConcatKernel : public BoundKernel<SequenceConcatKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(xs_, context.Inputs("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    names_ = InputArguments(context.op().desc(), "X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    int64_t rows = 0;
    for (size_t k = 0; k < xs_.size(); ++k) {
      MR_TRY(CheckSequences(names_[k], *xs_[k]));
      rows += xs_[k]->dims()[0];
      if (xs_[k]->lod().size() == xs_[0]->lod().size() && RowWidth(*xs_[k]) == RowWidth(*xs_[0])) continue;
      return BadData("\"" + names_[k] + "\" and \"" + names_[0] + "\" differ in their sequences or rows: " +
                     xs_[k]->dims().ToString() + ", " + xs_[0]->dims().ToString());
    }
    // Values are moved as the bytes that they are.
    const auto width = RowWidth(*xs_[0]) * static_cast<int64_t>(SizeOf(xs_[0]->dtype()));
    auto* out = static_cast<char*>(out_->ResizeRaw(xs_[0]->dtype(), WithRows(xs_[0]->dims(), rows)));
    from_.clear();
    for (const Tensor* x : xs_) from_.push_back(static_cast<const char*>(x->raw_data()));
    ForEachPiece(xs_, [&](size_t k, int64_t first, int64_t count) {
      out = std::copy_n(from_[k] + first * width, count * width, out);
    });
    lod_.assign(xs_[0]->lod().size(), 0);
    for (const Tensor* x : xs_) {
      for (size_t i = 0; i < lod_.size(); ++i) lod_[i] += x->lod()[i];
    }
    out_->set_lod(lod_);
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> xs_;
  std::vector<std::string> names_;
  std::vector<const char*> from_;
  std::vector<uint32_t> lod_;
  Tensor* out_ = nullptr;
};

class SequenceConcatGradKernel : public BoundKernel<SequenceConcatGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(xs_, context.Inputs("X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grads_, context.Outputs("X@GRAD"));
    names_ = InputArguments(context.op().desc(), "X");
    to_.resize(xs_.size());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    int64_t values = 0;
    for (size_t k = 0; k < xs_.size(); ++k) {
      MR_TRY(CheckSequences(names_[k], *xs_[k]));
      if (xs_[k]->lod().size() != xs_[0]->lod().size() || RowWidth(*xs_[k]) != RowWidth(*xs_[0])) {
        return InvalidConfig("the sequences of X \"" + names_[k] + "\" do not fit those of \"" + names_[0] + "\"");
      }
      values += xs_[k]->numel();
    }
    MR_ASSIGN(const float* grad, out_grad_.Read(values));
    for (size_t k = 0; k < xs_.size(); ++k) {
      to_[k] = x_grads_[k] == nullptr ? nullptr : ResizeLike(*xs_[k], x_grads_[k]);
    }
    const int64_t width = RowWidth(*xs_[0]);
    ForEachPiece(xs_, [&](size_t k, int64_t first, int64_t count) {
      if (to_[k] != nullptr) std::copy_n(grad, count * width, to_[k] + first * width);
      grad += count * width;
    });
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> xs_;
  std::vector<Tensor*> x_grads_;
  std::vector<float*> to_;
  std::vector<std::string> names_;
  GradInput out_grad_;
};

}  // namespace

void RegisterSequenceConcat(OpRegistry& registry) {
  registry.Add("sequence_concat")
      .Apart()
      .Doc("The i-th sequences of all inputs, one after another, are the i-th sequence of Out.")
      .Inputs("X", "float32, int64 or int32, with LoD; equal numbers of sequences, equal rows")
      .Output("Out", "with LoD")
      .InferShape(InferSequenceConcat)
      .Grad({.inputs = {"X"}})
      .Kernel<SequenceConcatKernel>();
  registry.AddGradient("sequence_concat").Kernel<SequenceConcatGradKernel>();
}

}  // namespace millrace
