#include <algorithm>

#include "ops/sequence.h"

namespace millrace {
namespace {

Status InferLodReset(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  if (x.dims.rank() == 0) return context.Error("X has no rows");
  if (context.op().Bool("append")) {
    return context.Error("append adds a second level of sequences, which is not supported; set it to false");
  }
  if (context.HasInput("Y")) {
    MR_ASSIGN(const VarMeta y, context.Input("Y"));
    if (y.lod_level == 0) MR_TRY(ExpectDType(context, "Y", y, DType::kInt32));
  } else if (context.op().Ints("target_lod").size() < 2) {
    return context.Error("neither Y nor target_lod says where the sequences begin");
  }
  x.lod_level = 1;
  context.SetOutput("Out", x);
  return Status::Ok();
}

class LodResetKernel : public BoundKernel<LodResetKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.OptionalInput("Y"));
    MR_ASSIGN(out_, context.Output("Out"));
    x_name_ = context.InputName("X");
    if (y_ != nullptr) y_name_ = context.InputName("Y");
    for (const int64_t offset : context.op().Ints("target_lod")) told_.push_back(offset);
    if (y_ != nullptr) told_.clear();
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (y_ != nullptr && y_->has_lod()) {
      lod_.assign(y_->lod().begin(), y_->lod().end());
    } else {
      if (y_ != nullptr && y_->dtype() != DType::kInt32) return BadData("\"" + y_name_ + "\" has no sequences");
      const int32_t* offsets = y_ == nullptr ? nullptr : y_->data<int32_t>();
      if (offsets != nullptr) told_.assign(offsets, offsets + y_->numel());
      MR_TRY(CheckOffsets());
      lod_.resize(told_.size());
      std::transform(told_.begin(), told_.end(), lod_.begin(), [](int64_t at) { return static_cast<uint32_t>(at); });
    }
    if (lod_.back() != x_->dims()[0]) {
      return BadData("the sequences end at " + std::to_string(lod_.back()) + ", but " + Shown(x_name_, x_->dims()) +
                     " has " + std::to_string(x_->dims()[0]) + " rows");
    }
    if (out_ != x_) out_->ViewOf(*x_, x_->dims());
    out_->set_lod(lod_);
    return Status::Ok();
  }

 private:
  Status CheckOffsets() const {
    const bool ascend = std::is_sorted(told_.begin(), told_.end());
    if (told_.size() >= 2 && told_[0] == 0 && ascend && told_.back() <= x_->dims()[0]) return Status::Ok();
    return BadData("the offsets of \"" + x_name_ + "\" must begin with 0 and not descend");
  }

  const Tensor* x_ = nullptr;
  const Tensor* y_ = nullptr;
  Tensor* out_ = nullptr;
  std::vector<int64_t> told_;
  std::vector<uint32_t> lod_;
  std::string x_name_;
  std::string y_name_;
};

class LodResetGradKernel : public BoundKernel<LodResetGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_grad_, context.Input("Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    x_grad_->ViewOf(*out_grad_, x_->dims());
    x_grad_->set_lod(x_->lod());
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* out_grad_ = nullptr;
  Tensor* x_grad_ = nullptr;
};

void AddLodResetAttrs(OpBuilder& op) {
  op.Attr("target_lod", std::vector<int64_t>{}, "offsets of the sequences, where there is no Y")
      .Attr("append", false, "adds a second level of sequences, which is refused");
}

}  // namespace

void RegisterLodReset(OpRegistry& registry) {
  OpBuilder forward = registry.Add("lod_reset");
  AddLodResetAttrs(forward);
  forward.Doc("X with other sequences.")
      .Input("X", "[values, ...]")
      .OptionalInput("Y", "its sequences are taken; without any, its numbers are the offsets (int32)")
      .Output("Out", "X with LoD; the values are not copied")
      .InferShape(InferLodReset)
      .Grad(GradFromX)
      .Kernel<LodResetKernel>();
  OpBuilder backward = AddGradFromX(registry, "lod_reset").Kernel<LodResetGradKernel>();
  AddLodResetAttrs(backward);
}

}  // namespace millrace
