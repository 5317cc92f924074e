#include <algorithm>
#include <cmath>

#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

// Continuous value model: the first two columns of an embedding are counts of shows and clicks. With use_cvm they
// become log(show + 1) and log(click + 1) - log(show + 1), without it they are cut off.

constexpr int64_t kCounts = 2;

/// A row of X: embeddings of so many slots side by side, each with its counts.
struct CvmRow {
  int64_t slots;
  int64_t width;  ///< of an embedding
};

/// kInvalidConfig when `columns` are not so many embeddings.
Result<CvmRow> RowOf(int64_t columns, int64_t slots) {
  if (slots >= 1 && columns % slots == 0 && columns / slots > kCounts) return CvmRow{slots, columns / slots};
  return InvalidConfig("cvm: X has " + std::to_string(columns) + " columns, which are not those of " +
                       std::to_string(slots) + " embeddings that begin with two counts");
}

Status InferCvm(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (x.dims.rank() < 2 || (x.dims[-1] >= 0 && x.dims[-1] <= kCounts)) {
    return context.Error("X " + x.dims.ToString() + " must have rows of more than two columns: shows, clicks, values");
  }
  if (context.HasInput("CVM")) {
    MR_ASSIGN(const VarMeta cvm, context.Input("CVM"));
    MR_TRY(ExpectDType(context, "CVM", cvm, DType::kFloat32));
    if (cvm.dims.rank() != 2 || !MayEqual(cvm.dims[1], kCounts)) {
      return context.Error("CVM " + cvm.dims.ToString() + " must have two columns: shows and clicks");
    }
  }
  const int64_t slots = context.op().Int("slots");
  if (slots < 1) return context.Error("slots must be at least 1, not " + std::to_string(slots));
  const int64_t columns = x.dims[-1];
  if (columns >= 0 && !RowOf(columns, slots).ok()) {
    return context.Error("X " + x.dims.ToString() + " must be embeddings of " + std::to_string(slots) +
                         " slots side by side, each of more than two columns");
  }
  if (!context.op().Bool("use_cvm") && columns >= 0) x.dims.set(x.dims.rank() - 1, columns - slots * kCounts);
  context.SetOutput("Y", x);
  return Status::Ok();
}

class CvmKernel : public BoundKernel<CvmKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.Output("Y"));
    use_ = context.op().Bool("use_cvm");
    slots_ = context.op().Int("slots");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    Dims dims = x_->dims();
    const int64_t rows = dims.Product(0, dims.rank() - 1);
    MR_ASSIGN(const CvmRow row, RowOf(dims[-1], slots_));
    const int64_t width = row.width;
    const float* x = x_->data<float>();
    const std::span<const uint32_t> lod = x_->lod();
    dims.set(dims.rank() - 1, row.slots * (use_ ? width : width - kCounts));
    float* y = y_->Resize<float>(dims);
    y_->set_lod(lod);
    for (int64_t i = 0; i < rows * row.slots; ++i, x += width) {
      if (use_) {
        *y++ = std::log(x[0] + 1);
        *y++ = std::log(x[1] + 1) - std::log(x[0] + 1);
      }
      y = std::copy(x + kCounts, x + width, y);
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* y_ = nullptr;
  bool use_ = true;
  int64_t slots_ = 1;
};

/// What arrives at the counts is not a gradient: they get the row's own counts, with which a table's update adds them
/// up. A row is one of CVM's, or of its sequence's; of more axes, as lookup_table_v2 makes them, the first is CVM's.
class CvmGradKernel : public BoundKernel<CvmGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(cvm_, context.Input("CVM"));
    MR_ASSIGN(y_grad_, GradInput::Bind(context, "Y@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    use_ = context.op().Bool("use_cvm");
    slots_ = context.op().Int("slots");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (x_->dims().rank() < 2 || x_->dims()[-1] < kCounts) {
      return InvalidConfig("X " + x_->dims().ToString() + " does not hold two counts a row");
    }
    const int64_t examples = x_->dims()[0];
    const int64_t rows = x_->dims().Product(0, x_->dims().rank() - 1);
    const int64_t each = examples == 0 ? 1 : rows / examples;
    MR_ASSIGN(const CvmRow row, RowOf(x_->dims()[-1], slots_));
    const int64_t width = row.width;
    const std::span<const uint32_t> lod = x_->lod();
    const int64_t needed = lod.empty() ? examples : static_cast<int64_t>(lod.size()) - 1;
    if (cvm_->numel() < needed * kCounts) {
      return BadData("CVM " + cvm_->dims().ToString() + " has too few rows for X " + x_->dims().ToString());
    }
    const float* counts = cvm_->data<float>();
    MR_ASSIGN(const float* grad, y_grad_.Read(rows * row.slots * (use_ ? width : width - kCounts)));
    float* x_grad = ResizeLike(*x_, x_grad_);
    size_t sequence = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = i / each;
      while (!lod.empty() && at >= lod[sequence + 1]) ++sequence;
      const float* of_row = counts + (lod.empty() ? at : static_cast<int64_t>(sequence)) * kCounts;
      for (int64_t slot = 0; slot < row.slots; ++slot) {
        x_grad = std::copy_n(of_row, kCounts, x_grad);
        if (use_) grad += kCounts;
        x_grad = std::copy_n(grad, width - kCounts, x_grad);
        grad += width - kCounts;
      }
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* cvm_ = nullptr;
  GradInput y_grad_;
  Tensor* x_grad_ = nullptr;
  bool use_ = true;
  int64_t slots_ = 1;
};

}  // namespace

void RegisterCvm(OpRegistry& registry) {
  registry.Add("cvm")
      .Doc("Turns the counts of shows and clicks in front of embeddings into features, or cuts them off.")
      .Input("X", "[rows, ..., 2 + width]: shows, clicks, values")
      .InputForGradient("CVM", "[rows, 2]: shows and clicks of each row")
      .Output("Y", "[rows, ..., 2 + width], or [rows, ..., width]")
      .Attr("use_cvm", true, "the counts stay, as logarithms; otherwise they are cut off")
      .Attr("slots", int64_t{1},
            "embeddings that stand side by side in a row of X, each with its counts; not of Paddle")
      .InferShape(InferCvm)
      .Grad({.inputs = {"X", "CVM"}, .of = {"Y"}})
      .Kernel<CvmKernel>();
  registry.AddGradient("cvm")
      .Doc("Gradient of cvm; the counts get those of CVM, as Paddle's tables expect.")
      .Kernel<CvmGradKernel>();
}

}  // namespace millrace
