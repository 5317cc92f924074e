#include <algorithm>

#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

/// What is wrong with offsets, whatever rows they are of; empty when nothing is.
std::string WrongOffset(const std::vector<int64_t>& offsets) {
  if (offsets.size() < 2) {
    return "must have two offsets or more, from 0 to the number of rows; it has " + std::to_string(offsets.size());
  }
  if (offsets[0] != 0) return "offset 0 is " + std::to_string(offsets[0]) + "; it must be 0";
  const auto fall = std::is_sorted_until(offsets.begin(), offsets.end());
  if (fall == offsets.end()) return "";
  return "offset " + std::to_string(fall - offsets.begin()) + " is " + std::to_string(*fall) +
         "; it must not be less than the one before it, " + std::to_string(*(fall - 1));
}

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
  } else if (const std::string wrong = WrongOffset(context.op().Ints("target_lod")); !wrong.empty()) {
    return context.Error("target_lod: " + wrong);
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
    if (y_ == nullptr) told_ = context.op().Ints("target_lod");
    source_ = y_ == nullptr ? "target_lod" : "Y \"" + context.InputName("Y") + "\"";
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const bool of_y = y_ != nullptr && y_->has_lod();
    if (!of_y && y_ != nullptr) {
      if (y_->dtype() != DType::kInt32) return BadData(source_ + " has no sequences");
      told_.assign(y_->data<int32_t>(), y_->data<int32_t>() + y_->numel());
      if (const std::string wrong = WrongOffset(told_); !wrong.empty()) return BadData(source_ + ": " + wrong);
    }
    const int64_t end = of_y ? y_->lod().back() : told_.back();
    if (end != x_->dims()[0]) {
      return BadData("the sequences of " + source_ + " end at " + std::to_string(end) + ", but " +
                     Shown(x_name_, x_->dims()) + " has " + std::to_string(x_->dims()[0]) + " rows");
    }
    if (of_y) {
      lod_.assign(y_->lod().begin(), y_->lod().end());
    } else {
      lod_.resize(told_.size());
      std::transform(told_.begin(), told_.end(), lod_.begin(), [](int64_t at) { return static_cast<uint32_t>(at); });
    }
    if (out_ != x_) out_->ViewOf(*x_, x_->dims());
    out_->set_lod(lod_);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* y_ = nullptr;
  Tensor* out_ = nullptr;
  std::vector<int64_t> told_;
  std::vector<uint32_t> lod_;
  std::string x_name_;
  std::string source_;
};

}  // namespace

void RegisterLodReset(OpRegistry& registry) {
  registry.Add("lod_reset")
      .Doc("X with other sequences.")
      .Input("X", "[values, ...]")
      .OptionalInput("Y", "its sequences are taken; without any, its numbers are the offsets (int32)")
      .Output("Out", "X with LoD; the values are not copied")
      .Attr("target_lod", std::vector<int64_t>{}, "offsets of the sequences, where there is no Y")
      .Attr("append", false, "adds a second level of sequences, which is refused")
      .InferShape(InferLodReset)
      .Grad({.inputs = {"X"}})
      .Kernel<LodResetKernel>();
  registry.AddGradient("lod_reset").Kernel<SequenceViewGradKernel>();
}

}  // namespace millrace
