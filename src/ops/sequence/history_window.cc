#include <algorithm>

#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

// The last rows of each sequence as a tensor of equal lengths, and which of its places hold a row.

Status InferWindow(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> inputs, context.Inputs("X"));
  int64_t columns = 0;
  for (const VarMeta& x : inputs) {
    MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
    MR_TRY(ExpectSequences(context, "X", x));
    if (x.dims.rank() != 2) return context.Error("X must be [rows, columns]; it is " + x.dims.ToString());
    columns = x.dims[1] < 0 || columns < 0 ? -1 : columns + x.dims[1];
  }
  if (inputs.empty()) return context.Error("X binds no variable");
  const int64_t length = context.op().Int("length");
  if (length < 1) return context.Error("length must be at least 1, not " + std::to_string(length));
  VarMeta out;
  out.dims = Dims{-1, length, columns};
  context.SetOutput("Out", out);
  out.dims = Dims{-1, length};
  context.SetOutput("Mask", out);
  return Status::Ok();
}

/// How many rows of a sequence are seen, and the first of them.
struct Seen {
  int64_t first;
  int64_t count;
};

Seen SeenOf(std::span<const uint32_t> lod, size_t sequence, int64_t length) {
  const int64_t rows = lod[sequence + 1] - lod[sequence];
  const int64_t count = std::min(rows, length);
  return {lod[sequence + 1] - count, count};
}

/// The sequences of several inputs, which are as long in one as in the others.
class Histories {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(inputs_, context.Inputs("X"));
    names_ = InputArguments(context.op().desc(), "X");
    return Status::Ok();
  }
  Status Check(const RunContext& context) {
    width_ = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      MR_TRY(CheckSequences(names_[i], *inputs_[i]));
      width_ += RowWidth(*inputs_[i]);
      const std::span<const uint32_t> first = lod();
      const std::span<const uint32_t> other = inputs_[i]->lod();
      const auto [a, b] = std::mismatch(first.begin(), first.end(), other.begin(), other.end());
      if (a == first.end() && b == other.end()) continue;
      const auto row = std::max<std::ptrdiff_t>(a - first.begin() - 1, 0);
      const auto count = [row](std::span<const uint32_t> lod) {
        const auto at = static_cast<size_t>(row);
        return at + 1 < lod.size() ? lod[at + 1] - lod[at] : 0;
      };
      return BadData("\"" + names_[0] + "\" of " + context.DescribeRow(static_cast<int>(row)) + " has " +
                     std::to_string(count(first)) + " values and \"" + names_[i] + "\" has " +
                     std::to_string(count(other)) + ": values of a history belong together, one of each slot");
    }
    return Status::Ok();
  }
  std::span<const uint32_t> lod() const { return inputs_[0]->lod(); }
  int64_t sequences() const { return static_cast<int64_t>(lod().size()) - 1; }
  int64_t width() const { return width_; }
  const std::vector<const Tensor*>& inputs() const { return inputs_; }

 private:
  std::vector<const Tensor*> inputs_;
  std::vector<std::string> names_;
  int64_t width_ = 0;
};

class HistoryWindowKernel : public BoundKernel<HistoryWindowKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(x_.Bind(context));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(mask_, context.Output("Mask"));
    length_ = context.op().Int("length");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_TRY(x_.Check(context));
    const int64_t width = x_.width();
    float* out = out_->Resize<float>({x_.sequences(), length_, width});
    float* mask = mask_->Resize<float>({x_.sequences(), length_});
    for (int64_t i = 0; i < x_.sequences(); ++i, out += length_ * width, mask += length_) {
      const Seen seen = SeenOf(x_.lod(), static_cast<size_t>(i), length_);
      int64_t column = 0;
      for (const Tensor* x : x_.inputs()) {
        const int64_t own = RowWidth(*x);
        for (int64_t t = 0; t < seen.count; ++t) {
          std::copy_n(x->data<float>() + (seen.first + t) * own, own, out + t * width + column);
        }
        column += own;
      }
      std::fill(out + seen.count * width, out + length_ * width, 0.0F);
      std::fill(std::fill_n(mask, seen.count, 1.0F), mask + length_, 0.0F);
    }
    return Status::Ok();
  }

 private:
  Histories x_;
  Tensor* out_ = nullptr;
  Tensor* mask_ = nullptr;
  int64_t length_ = 1;
};

class HistoryWindowGradKernel : public BoundKernel<HistoryWindowGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(x_.Bind(context));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grads_, context.Outputs("X@GRAD"));
    length_ = context.op().Int("length");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_TRY(x_.Check(context));
    const int64_t width = x_.width();
    MR_ASSIGN(const float* grad, out_grad_.Read(x_.sequences() * length_ * width));
    int64_t column = 0;
    for (size_t n = 0; n < x_.inputs().size(); ++n) {
      const Tensor& x = *x_.inputs()[n];
      const int64_t own = RowWidth(x);
      if (x_grads_[n] != nullptr) {
        float* to = ResizeLike(x, x_grads_[n]);
        std::fill_n(to, x.numel(), 0.0F);
        for (int64_t i = 0; i < x_.sequences(); ++i) {
          const Seen seen = SeenOf(x_.lod(), static_cast<size_t>(i), length_);
          for (int64_t t = 0; t < seen.count; ++t) {
            std::copy_n(grad + (i * length_ + t) * width + column, own, to + (seen.first + t) * own);
          }
        }
      }
      column += own;
    }
    return Status::Ok();
  }

 private:
  Histories x_;
  GradInput out_grad_;
  std::vector<Tensor*> x_grads_;
  int64_t length_ = 1;
};

}  // namespace

void RegisterHistoryWindow(OpRegistry& registry) {
  registry.Add("history_window")
      .Apart()
      .Doc(
          "The last `length` rows of each sequence, in their order, those of several inputs side by side, with zeros "
          "behind "
          "them where there are fewer.")
      .Inputs("X", "[rows, columns] with sequences, of the same lengths")
      .Output("Out", "[sequences, length, sum of columns]")
      .Output("Mask", "[sequences, length]: 1 where Out has a row, 0 behind")
      .Required<int64_t>("length", "most rows of a sequence that are seen")
      .InferShape(InferWindow)
      .Grad({.inputs = {"X"}})
      .Kernel<HistoryWindowKernel>();
  registry.AddGradient("history_window").Kernel<HistoryWindowGradKernel>();
}

}  // namespace millrace
