#include <algorithm>
#include <vector>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/number_types.h"

namespace millrace {
namespace {

Status InferScatter(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta ids, context.Input("Ids"));
  MR_ASSIGN(const VarMeta updates, context.Input("Updates"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(ExpectDType(context, "Updates", updates, x.dtype));
  if (ids.dtype != DType::kInt32) MR_TRY(ExpectDType(context, "Ids", ids, DType::kInt64));
  const bool flat = ids.dims.rank() == 1 || (ids.dims.rank() == 2 && MayEqual(ids.dims[1], 1));
  if (!flat) return context.Error("Ids " + ids.dims.ToString() + " must have one axis");
  if (x.dims.rank() < 1 || updates.dims.rank() != x.dims.rank() || !MayEqual(updates.dims[0], ids.dims[0])) {
    return context.Error("Updates " + updates.dims.ToString() + " must have a row of X " + x.dims.ToString() +
                         " for each of Ids " + ids.dims.ToString());
  }
  for (int axis = 1; axis < x.dims.rank(); ++axis) {
    if (MayEqual(updates.dims[axis], x.dims[axis])) continue;
    return context.Error("rows differ: X " + x.dims.ToString() + ", Updates " + updates.dims.ToString());
  }
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// The rows that Ids names, checked.
class RowsOfIds {
 public:
  /// `rows` is how many there are, `name` that of Ids.
  Status Read(const Tensor& ids, int64_t rows, const std::string& name) {
    rows_.resize(static_cast<size_t>(ids.numel()));
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      rows_[i] = ids.dtype() == DType::kInt32 ? ids.data<int32_t>()[at] : ids.data<int64_t>()[at];
      if (rows_[i] >= 0 && rows_[i] < rows) continue;
      return BadData("Ids \"" + name + "\"[" + std::to_string(i) + "] is " + std::to_string(rows_[i]) + ", outside " +
                     std::to_string(rows) + " rows of X");
    }
    return Status::Ok();
  }
  const std::vector<int64_t>& rows() const { return rows_; }

 private:
  std::vector<int64_t> rows_;
};

class ScatterKernel : public BoundKernel<ScatterKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(ids_, context.Input("Ids"));
    MR_ASSIGN(updates_, FloatInput::Bind(context, "Updates"));
    MR_ASSIGN(out_, context.Output("Out"));
    if (out_ == &updates_.tensor() || out_ == ids_) {
      return InvalidConfig("Out is the variable of Ids or Updates, which are read on while it is written");
    }
    overwrite_ = context.op().Bool("overwrite");
    name_ = context.InputName("Ids");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t height = x_.dims()[0];
    const int64_t width = x_.dims().Product(1, x_.dims().rank());
    MR_TRY(rows_.Read(*ids_, height, name_));
    if (updates_.tensor().numel() != ids_->numel() * width) {
      return BadData("Updates " + updates_.dims().ToString() + " must have a row of X " + x_.dims().ToString() +
                     " for each of " + std::to_string(ids_->numel()) + " ids");
    }
    WithNumber(x_.tensor().dtype(), [&](auto sample) { Write<decltype(sample)>(height * width, width); });
    return Status::Ok();
  }

 private:
  template <class T>
  void Write(int64_t count, int64_t width) {
    const T* x = ReadNumbers<T>(x_);
    const T* updates = ReadNumbers<T>(updates_);
    T* out = ResizeLikeIn<T>(x_.tensor(), out_);
    if (out != x) std::copy_n(x, count, out);
    if (!overwrite_) {
      for (const int64_t row : rows_.rows()) std::fill_n(out + row * width, width, T{});
    }
    for (const int64_t row : rows_.rows()) {
      T* to = out + row * width;
      for (int64_t i = 0; i < width; ++i) to[i] = overwrite_ ? updates[i] : static_cast<T>(to[i] + updates[i]);
      updates += width;
    }
  }

  FloatInput x_;
  const Tensor* ids_ = nullptr;
  FloatInput updates_;
  Tensor* out_ = nullptr;
  RowsOfIds rows_;
  bool overwrite_ = true;
  std::string name_;
};

/// Rows that Ids names come of Updates, of the last one that was written; all others of X.
class ScatterGradKernel : public BoundKernel<ScatterGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(ids_, context.Input("Ids"));
    MR_ASSIGN(updates_, context.Input("Updates"));
    MR_ASSIGN(out_grad_, context.Input("Out@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(updates_grad_, context.OptionalOutput("Updates@GRAD"));
    if (updates_grad_ == out_grad_) {
      return InvalidConfig("Updates@GRAD is the variable of Out@GRAD, which is read on while it is written");
    }
    overwrite_ = context.op().Bool("overwrite");
    name_ = context.InputName("Ids");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = out_grad_->dims();
    const int64_t width = dims.Product(1, dims.rank());
    MR_TRY(rows_.Read(*ids_, dims[0], name_));
    const float* grad = out_grad_->data<float>();
    if (updates_grad_ != nullptr) {
      if (updates_->numel() != ids_->numel() * width) {
        return InvalidConfig("Updates " + updates_->dims().ToString() + " must have a row of Out@GRAD " +
                             dims.ToString() + " for each of " + std::to_string(ids_->numel()) + " ids");
      }
      float* to = ResizeLike(*updates_, updates_grad_);
      last_.assign(static_cast<size_t>(dims[0]), 0);
      for (size_t i = 0; i < rows_.rows().size(); ++i) last_[static_cast<size_t>(rows_.rows()[i])] = i;
      for (size_t i = 0; i < rows_.rows().size(); ++i, to += width) {
        const int64_t row = rows_.rows()[i];
        if (!overwrite_ || last_[static_cast<size_t>(row)] == i) {
          std::copy_n(grad + row * width, width, to);
        } else {
          std::fill_n(to, width, 0.0F);
        }
      }
    }
    if (x_grad_ == nullptr) return Status::Ok();
    float* to = ResizeLike(*out_grad_, x_grad_);
    if (to != grad) std::copy_n(grad, dims.numel(), to);
    for (const int64_t row : rows_.rows()) std::fill_n(to + row * width, width, 0.0F);
    return Status::Ok();
  }

 private:
  const Tensor* ids_ = nullptr;
  const Tensor* updates_ = nullptr;
  const Tensor* out_grad_ = nullptr;
  Tensor* x_grad_ = nullptr;
  Tensor* updates_grad_ = nullptr;
  RowsOfIds rows_;
  std::vector<size_t> last_;
  bool overwrite_ = true;
  std::string name_;
};

}  // namespace

void RegisterScatter(OpRegistry& registry) {
  const char* overwrite = "true: the last update of a row is the row; false: the sum of its updates is";
  registry.Add("scatter")
      .Doc("X with the rows that Ids names replaced by those of Updates.")
      .Input("X", "float32, int64 or int32 [rows, ...]")
      .Input("Ids", "int32 or int64 [updates]")
      .Input("Updates", "[updates, ...], of the type of X")
      .Output("Out", "shape of X")
      .Attr("overwrite", true, overwrite)
      .InferShape(InferScatter)
      .Grad({.inputs = {"Ids", "Updates"}, .to = {"X", "Updates"}})
      .Kernel<ScatterKernel>();
  registry.AddGradient("scatter").Kernel<ScatterGradKernel>();
}

}  // namespace millrace
