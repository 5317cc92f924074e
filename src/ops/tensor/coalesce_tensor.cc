#include <algorithm>

#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferCoalesce(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> inputs, context.Inputs("Input"));
  if (static_cast<int>(inputs.size()) != context.OutputCount("Output")) {
    return context.Error("has " + std::to_string(inputs.size()) + " Input and " +
                         std::to_string(context.OutputCount("Output")) + " Output");
  }
  int64_t total = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    MR_TRY(ExpectDType(context, "Input", inputs[i], DType::kFloat32));
    context.SetOutput("Output", inputs[i], static_cast<int>(i));
    const int64_t count = KnownProduct(inputs[i].dims, 0, inputs[i].dims.rank());
    total = total < 0 || count < 0 ? -1 : total + count;
  }
  VarMeta all;
  all.dims = Dims{total};
  context.SetOutput("FusedOutput", all);
  return Status::Ok();
}

/// Paddle lets Output share the memory of FusedOutput; here each has its own, which programs cannot tell as long as
/// they write none of them through the other. SavePersistables joins them again.
class CoalesceKernel : public BoundKernel<CoalesceKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(inputs_, context.Inputs("Input"));
    MR_ASSIGN(outputs_, context.Outputs("Output"));
    MR_ASSIGN(all_, context.OptionalOutput("FusedOutput"));
    is_constant_ = context.op().Bool("set_constant");
    constant_ = context.op().Float("constant");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    int64_t total = 0;
    for (const Tensor* input : inputs_) total += input->numel();
    float* all = all_ == nullptr ? nullptr : all_->Resize<float>({total});
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const int64_t count = inputs_[i]->numel();
      const float* from = inputs_[i]->data<float>();
      if (outputs_[i] != inputs_[i]) {
        float* to = ResizeLike(*inputs_[i], outputs_[i]);
        std::copy_n(from, count, to);
        from = to;
      }
      if (is_constant_) std::fill_n(outputs_[i]->mutable_data<float>(), count, constant_);
      if (all == nullptr) continue;
      std::copy_n(from, count, all);
      all += count;
    }
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> inputs_;
  std::vector<Tensor*> outputs_;
  Tensor* all_ = nullptr;
  bool is_constant_ = false;
  float constant_ = 0;
};

}  // namespace

void RegisterCoalesceTensor(OpRegistry& registry) {
  const char* ignored = "as Paddle writes it; changes nothing here";
  OpBuilder op = registry.Add("coalesce_tensor");
  op.Doc("Copies tensors, and all of them behind one another: startup programs of paddle.nn's recurrent layers.")
      .Inputs("Input", "float tensors")
      .Outputs("Output", "each of Input")
      .OptionalOutput("FusedOutput", "their values in a row")
      .Attr("copy_data", true, ignored)
      .Attr("set_constant", false, "Output is `constant` everywhere")
      .Attr("constant", 0.0F, "see set_constant")
      .Fixed("use_align", false, "gaps between the tensors")
      .Fixed("dtype", int64_t{5}, "float32");
  for (const char* name : {"align_size", "user_defined_size_of_dtype"}) op.Attr(name, int64_t{-1}, ignored);
  for (const char* name : {"concated_ranks", "concated_shapes"}) op.Attr(name, std::vector<int64_t>{}, ignored);
  op.Attr("persist_output", false, ignored).InferShape(InferCoalesce).Kernel<CoalesceKernel>();
}

}  // namespace millrace
