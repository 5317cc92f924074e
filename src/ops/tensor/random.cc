#include <cmath>

#include "core/hash.h"
#include "ops/kernel.h"
#include "ops/shape_input.h"
#include "ops/tensor/in_pieces.h"

namespace millrace {
namespace {

// Every value is a function of (seed, name of Out, index), so that no thread and no order changes it.

struct Uniform {
  float low, width;
  explicit Uniform(const OpView& op) : low(op.Float("min")), width(op.Float("max") - op.Float("min")) {}
  float At(uint64_t seed, uint64_t i) const { return low + width * HashedUniform(seed, i); }
};

struct Gaussian {
  float mean, deviation;
  explicit Gaussian(const OpView& op) : mean(op.Float("mean")), deviation(op.Float("std")) {}
  float At(uint64_t seed, uint64_t i) const { return mean + deviation * HashedNormal(seed, i); }
};

/// Within two deviations of the mean: values beyond are drawn again.
struct TruncatedGaussian {
  Gaussian normal;
  explicit TruncatedGaussian(const OpView& op) : normal(op) {}
  float At(uint64_t seed, uint64_t i) const {
    float value = HashedNormal(seed, i);
    for (uint64_t round = 1; std::abs(value) > 2; ++round) value = HashedNormal(Mix64(seed, round), i);
    return normal.mean + normal.deviation * value;
  }
};

Status InferRandom(InferShapeContext& context) {
  VarMeta out;
  MR_ASSIGN(out.dims, ReadShape(context));
  if (context.op().Int("dtype") != VarType::FP32) return context.Error("only dtype 5 (float) is supported");
  context.SetOutput("Out", out);
  return Status::Ok();
}

template <class F>
class RandomKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    std::unique_ptr<RandomKernel> kernel(new RandomKernel(context.op()));
    MR_ASSIGN(kernel->out_, context.Output("Out"));
    MR_ASSIGN(kernel->shape_, ShapeInput::Bind(context));
    const auto seed = static_cast<uint64_t>(context.op().Int("seed"));
    kernel->seed_ = Mix64(seed != 0 ? seed : context.options().seed, HashName(context.OutputName("Out")));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  Status Run(const RunContext& context) override {
    // The same values in every start of a job, others in every batch of a program that draws as it trains.
    const uint64_t seed = context.step == 0 ? seed_ : Mix64(seed_, static_cast<uint64_t>(context.step));
    MR_ASSIGN(const Dims dims, shape_.Read());
    float* out = out_->Resize<float>(dims);
    return InPieces(context, dims.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = draw_.At(seed, static_cast<uint64_t>(i));
    });
  }

 private:
  explicit RandomKernel(const OpView& op) : draw_(op) {}

  F draw_;
  ShapeInput shape_;
  Tensor* out_ = nullptr;
  uint64_t seed_ = 0;
};

OpBuilder AddDraw(OpBuilder op) {
  AddShape(op);
  return op.Output("Out", "of the given shape")
      .Attr("dtype", int64_t{VarType::FP32}, "5, float")
      .Attr("seed", int64_t{0}, "0: the job's seed and Out's name")
      .InferShape(InferRandom);
}

OpBuilder AddMoments(OpBuilder op) { return op.Attr("mean", 0.0F, "mean").Attr("std", 1.0F, "standard deviation"); }

}  // namespace

void RegisterRandom(OpRegistry& registry) {
  AddDraw(registry.Add("uniform_random"))
      .Doc("Out = uniform random values from min up to, without, max.")
      .Attr("min", -1.0F, "lower bound")
      .Attr("max", 1.0F, "upper bound")
      .Fixed("diag_num", int64_t{0}, "how many values of a diagonal are set to diag_val")
      .Attr("diag_step", int64_t{0}, "as Paddle writes it; changes nothing here")
      .Attr("diag_val", 1.0F, "as Paddle writes it; changes nothing here")
      .Kernel<RandomKernel<Uniform>>();
  AddMoments(AddDraw(registry.Add("gaussian_random")))
      .Doc("Out = normal random values.")
      .Kernel<RandomKernel<Gaussian>>();
  AddMoments(AddDraw(registry.Add("truncated_gaussian_random")))
      .Doc("Out = normal random values within two deviations of the mean.")
      .Kernel<RandomKernel<TruncatedGaussian>>();
}

}  // namespace millrace
