#include <algorithm>
#include <iostream>
#include <sstream>

#include "ops/kernel.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

Status InferPrint(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta in, context.Input("In"));
  context.SetOutput("Out", in);
  return Status::Ok();
}

class PrintKernel : public BoundKernel<PrintKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(in_, context.Input("In"));
    MR_ASSIGN(out_, context.OptionalOutput("Out"));
    const std::string message = context.op().String("message");
    title_ = (message.empty() ? "" : message + " ") + context.InputName("In");
    summarize_ = context.op().Int("summarize");
    const int64_t first_n = context.op().Int("first_n");
    left_ = first_n < 0 ? INT64_MAX : first_n;
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (left_ > 0) {
      --left_;
      std::cerr << Describe();
    }
    if (out_ != nullptr && out_ != in_) out_->ViewOf(*in_, in_->dims());
    return Status::Ok();
  }

 private:
  std::string Describe() const {
    std::ostringstream text;
    text << title_ << " " << DTypeName(in_->dtype()) << in_->dims().ToString() << ":";
    const int64_t count = summarize_ < 0 ? in_->numel() : std::min(in_->numel(), summarize_);
    WithType(in_->dtype(), [&](auto sample) {
      const auto* values = in_->data<decltype(sample)>();
      for (int64_t i = 0; i < count; ++i) text << ' ' << +values[i];
    });
    text << (count < in_->numel() ? " ...\n" : "\n");
    return text.str();
  }

  const Tensor* in_ = nullptr;
  Tensor* out_ = nullptr;
  std::string title_;
  int64_t summarize_ = 20;
  int64_t left_ = 0;
};

std::vector<OpDesc> PrintGrad(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("In")) return {};
  const OpDesc names = context.GradOp({}, {}, {"Out"}, {"In"});
  OpDesc grad;
  grad.set_type("assign");
  SetInput(grad, "X", InputArguments(names, "Out@GRAD"));
  SetOutput(grad, "Out", OutputArguments(names, "In@GRAD"));
  return {grad};
}

}  // namespace

void RegisterPrint(OpRegistry& registry) {
  const std::string ignored = "as Paddle writes it; changes nothing here";
  registry.Add("print")
      .Doc("Writes a variable to stderr as it passes: for debugging.")
      .Input("In", "a tensor")
      .OptionalOutput("Out", "In, not copied")
      .Attr("message", std::string(), "written before the name")
      .Attr("first_n", int64_t{-1}, "batches that are written; -1: all")
      .Attr("summarize", int64_t{20}, "values that are written; -1: all")
      .Attr("print_phase", std::string("BOTH"), ignored)
      .Attr("is_forward", true, ignored)
      .Attr("print_tensor_name", true, ignored)
      .Attr("print_tensor_type", true, ignored)
      .Attr("print_tensor_shape", true, ignored)
      .Attr("print_tensor_layout", true, ignored)
      .Attr("print_tensor_lod", true, ignored)
      .Effect("prints")
      .InferShape(InferPrint)
      .Grad(PrintGrad)
      .Kernel<PrintKernel>();
}

}  // namespace millrace
