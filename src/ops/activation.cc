#include <algorithm>
#include <cmath>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

struct Relu {
  static float Forward(float x) { return x > 0 ? x : 0; }
  static float Backward(float out, float grad) { return out > 0 ? grad : 0; }
};

struct Sigmoid {
  static float Forward(float x) { return 1 / (1 + std::exp(-x)); }
  static float Backward(float out, float grad) { return grad * out * (1 - out); }
};

struct Tanh {
  static float Forward(float x) { return std::tanh(x); }
  static float Backward(float out, float grad) { return grad * (1 - out * out); }
};

struct Square {
  static float Forward(float x) { return x * x; }
  static float Backward(float x, float grad) { return 2 * x * grad; }
};

template <class F>
class MapKernel : public BoundKernel<MapKernel<F>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const int64_t count = x_.tensor().numel();
    float* out = ResizeLike(x_.tensor(), out_);
    for (int64_t i = 0; i < count; ++i) out[i] = F::Forward(x[i]);
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
};

/// Reads X when the operator has it, else Out.
template <class F>
class MapGradKernel : public BoundKernel<MapGradKernel<F>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(value_, FloatInput::BindOptional(context, "X"));
    if (!value_.bound()) {
      MR_ASSIGN(value_, FloatInput::Bind(context, "Out"));
    }
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* value = value_.Read();
    const int64_t count = value_.tensor().numel();
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* x_grad = ResizeLike(value_.tensor(), x_grad_);
    for (int64_t i = 0; i < count; ++i) x_grad[i] = F::Backward(value[i], grad[i]);
    return Status::Ok();
  }

 private:
  FloatInput value_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
};

Status InferMap(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  context.SetOutput("Out", x);
  return Status::Ok();
}

template <class F>
void Register(OpRegistry& registry, const std::string& type, const std::string& doc, const std::string& reads) {
  registry.Add(type)
      .Doc(doc)
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .InferShape(InferMap)
      .Grad(reads == "X" ? GradFromX : GradFromOut)
      .Kernel<MapKernel<F>>();
  registry.Add(type + "_grad")
      .Doc("Gradient of " + type + ".")
      .Input(reads, "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Output("X@GRAD", "gradient of X")
      .InferShape(InferGradients)
      .Gradient()
      .Kernel<MapGradKernel<F>>();
}

}  // namespace

void RegisterActivation(OpRegistry& registry) {
  Register<Relu>(registry, "relu", "Out = max(X, 0).", "Out");
  Register<Sigmoid>(registry, "sigmoid", "Out = 1 / (1 + exp(-X)).", "Out");
  Register<Tanh>(registry, "tanh", "Out = tanh(X).", "Out");
  Register<Square>(registry, "square", "Out = X * X.", "X");
}

}  // namespace millrace
