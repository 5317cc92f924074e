#pragma once

#include <string>

#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {

/// kInvalidConfig when input `parameter` is known to have no sequences.
inline Status ExpectSequences(const InferShapeContext& context, std::string_view parameter, const VarMeta& meta) {
  if (meta.lod_level > 0) return Status::Ok();
  return context.Error("input " + std::string(parameter) + " (\"" + InputArguments(context.op().desc(), parameter)[0] +
                       "\") has no sequences (lod_level 0)");
}

/// kBadData when a batch's tensor has no sequences, or those of a tensor with other rows: a program may write values of
/// other sizes where the sequences stay.
inline Status CheckSequences(const std::string& name, const Tensor& tensor) {
  if (!tensor.has_lod()) return BadData("\"" + name + "\" has no sequences");
  const uint32_t rows = tensor.lod().back();
  if (tensor.dims().rank() > 0 && tensor.dims()[0] == rows) return Status::Ok();
  return BadData(Shown(name, tensor.dims()) + " has sequences of " + std::to_string(rows) + " rows together");
}

/// Values of a row: the product of the sizes behind the first.
inline int64_t RowWidth(const Tensor& tensor) { return tensor.dims().Product(1, tensor.dims().rank()); }

/// `dims` with another first size.
inline Dims WithRows(Dims dims, int64_t rows) {
  dims.set(0, rows);
  return dims;
}

/// Gradient of an operator that gives the values of X other sequences or rows: the same values in X's own.
class SequenceViewGradKernel : public BoundKernel<SequenceViewGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(out_grad_.Read(x_->numel()).status());
    x_grad_->ViewOf(out_grad_.tensor(), x_->dims());
    x_grad_->set_lod(x_->lod());
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
};

}  // namespace millrace
