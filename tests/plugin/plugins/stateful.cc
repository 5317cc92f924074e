// Operators with a state of their own: one that checkpoints hold, and a source whose state they do not.

#include <stdexcept>
#include <string>

#include "ops/float_input.h"
#include "ops/kernel.h"
#include "plugin/plugin.h"
#include "runtime/kernel_state.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

/// Out = X * (1 + rate * runs before this one).
class DriftKernel : public BoundKernel<DriftKernel>, public KernelState {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    rate_ = context.op().Float("rate");
    throws_ = context.op().String("throws");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    float* out = ResizeLike(x_.tensor(), out_);
    for (int64_t i = 0; i < x_.tensor().numel(); ++i) out[i] = x[i] * (1 + rate_ * static_cast<float>(runs_));
    ++runs_;
    return Status::Ok();
  }
  Status SaveState(std::string* bytes) override {
    if (throws_ == "save") throw std::runtime_error("no room for the state");
    *bytes += std::to_string(runs_);
    return Status::Ok();
  }
  Status LoadState(std::string_view bytes, const std::stop_token&) override {
    runs_ = std::stoi(std::string(bytes));
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  float rate_ = 0;
  std::string throws_;
  int runs_ = 0;
};

/// X@GRAD = Out@GRAD.
std::vector<OpDesc> StraightThrough(const GradContext& context) {
  OpDesc op;
  op.set_type("assign");
  SetInput(op, "X", {GradName(OutputArguments(context.op().desc(), "Out")[0])});
  SetOutput(op, "Out", {GradName(InputArguments(context.op().desc(), "X")[0])});
  return {op};
}

/// Out = 1, 2, 3, ...
class TicksKernel : public BoundKernel<TicksKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_, context.Output("Out"));
    rows_ = context.op().Int("rows");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    out_->Resize<double>({rows_, 2})[0] = ++ticks_;
    return Status::Ok();
  }

 private:
  Tensor* out_ = nullptr;
  int64_t rows_ = 0;
  double ticks_ = 0;
};

Status InferTicks(InferShapeContext& context) {
  VarMeta out;
  out.dtype = DType::kFloat64;
  out.dims = {9, 2};
  context.SetOutput("Out", out);
  return Status::Ok();
}

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  registries.ops.Add("drift")
      .Doc("Out = X * (1 + rate * runs).")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("rate", 0.01F, "how much more each run gives")
      .Attr("throws", std::string(), "save: SaveState does")
      .InferShape(SameAsX)
      .Grad(StraightThrough)
      .Kernel<DriftKernel>();
  registries.ops.Add("ticks")
      .Doc("Counts its runs.")
      .Output("Out", "[9, 2] of type float64")
      .Attr("rows", int64_t{9}, "what it gives, whatever its shape rule says")
      .InferShape(InferTicks)
      .Kernel<TicksKernel>();
  return Status::Ok();
}
