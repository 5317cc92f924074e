#pragma once

#include <string>
#include <type_traits>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/number_types.h"

namespace millrace {

/// What the gradient of a function of one value reads: the function's input, its output, or neither.
enum class MapReads : uint8_t { kX, kOut, kNothing };

template <class F>
F MakeMap(const OpView& op) {
  if constexpr (std::is_constructible_v<F, const OpView&>) {
    return F(op);
  } else {
    return F{};
  }
}

/// True when F computes whole numbers as well: it says so by `using TakesWholeNumbers = void`.
template <class F>
inline constexpr bool kTakesWholeNumbers = requires {
  typename F::TakesWholeNumbers;
};

/// Out[i] = F.Forward(X[i]).
template <class F>
class MapKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    std::unique_ptr<MapKernel> kernel(new MapKernel(context.op()));
    MR_ASSIGN(kernel->x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(kernel->out_, context.Output("Out"));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  Status Run(const RunContext&) override {
    if constexpr (kTakesWholeNumbers<F>) {
      WithNumber(x_.tensor().dtype(), [this](auto sample) { this->template Map<decltype(sample)>(); });
    } else {
      Map<float>();
    }
    return Status::Ok();
  }

 private:
  template <class T>
  void Map() {
    const T* x = ReadNumbers<T>(x_);
    const int64_t count = x_.tensor().numel();
    T* out = ResizeLikeIn<T>(x_.tensor(), out_);
    for (int64_t i = 0; i < count; ++i) out[i] = f_.Forward(x[i]);
  }

  explicit MapKernel(const OpView& op) : f_(MakeMap<F>(op)) {}
  F f_;
  FloatInput x_;
  Tensor* out_ = nullptr;
};

/// X@GRAD[i] = F.Backward(value[i], Out@GRAD[i]), where the value is what R says.
template <class F, MapReads R>
class MapGradKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    std::unique_ptr<MapGradKernel> kernel(new MapGradKernel(context.op()));
    const char* read = R == MapReads::kX ? "X" : R == MapReads::kOut ? "Out" : "Out@GRAD";
    MR_ASSIGN(kernel->value_, FloatInput::Bind(context, read));
    MR_ASSIGN(kernel->out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(kernel->x_grad_, context.Output("X@GRAD"));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  Status Run(const RunContext&) override {
    const float* value = value_.Read();
    const int64_t count = value_.tensor().numel();
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* x_grad = ResizeLike(value_.tensor(), x_grad_);
    for (int64_t i = 0; i < count; ++i) x_grad[i] = f_.Backward(value[i], grad[i]);
    return Status::Ok();
  }

 private:
  explicit MapGradKernel(const OpView& op) : f_(MakeMap<F>(op)) {}
  F f_;
  FloatInput value_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
};

/// Out is described like X, which must be float.
Status InferMap(InferShapeContext& context);
/// Out is described like X, which may hold whole numbers.
Status InferNumberMap(InferShapeContext& context);

/// Registers TYPE and TYPE_grad. `attrs` adds their attributes; may be null.
template <class F, MapReads R>
void RegisterMap(OpRegistry& registry, const std::string& type, const std::string& doc,
                 void (*attrs)(OpBuilder&) = nullptr) {
  GradArgs reads;
  if (R == MapReads::kX) reads.inputs = {"X"};
  if (R == MapReads::kOut) reads.outputs = {"Out"};
  OpBuilder forward = registry.Add(type);
  forward.Doc(doc)
      .Input("X", kTakesWholeNumbers<F> ? "float32, int64 or int32; any shape" : "any shape")
      .Output("Out", "shape of X")
      .InferShape(kTakesWholeNumbers<F> ? InferNumberMap : InferMap)
      .Grad(reads)
      .template Kernel<MapKernel<F>>();
  if (attrs != nullptr) attrs(forward);
  OpBuilder backward = registry.AddGradient(type).template Kernel<MapGradKernel<F, R>>();
  // Paddle binds both where a variant of its kernel reads the other one.
  if (R != MapReads::kX) backward.UnreadInput("X", "of the forward operator");
  if (R != MapReads::kOut) backward.UnreadInput("Out", "of the forward operator");
}

}  // namespace millrace
