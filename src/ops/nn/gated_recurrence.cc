#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

// A gated recurrent unit over sequences of equal length with a mask. X holds the products of the inputs, three columns
// of `units` each: update gate u, reset gate r, candidate c.
//
//     u = sigmoid(X_u + h W_u)    r = sigmoid(X_r + h W_r)    c = tanh(X_c + (r * h) W_c)
//     h' = (1 - u a) h + u a c    where the mask is 0: h' = h
//
// a is 1, or the attention of the place (AUGRU, Zhou et al. 2019).

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

struct Sizes {
  int64_t rows = 0;
  int64_t length = 0;
  int64_t units = 0;
};

/// What the forward and the gradient operator read.
class Inputs {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(mask_, FloatInput::Bind(context, "Mask"));
    MR_ASSIGN(weight_, FloatInput::Bind(context, "Weight"));
    MR_ASSIGN(attention_, FloatInput::BindOptional(context, "Attention"));
    return Status::Ok();
  }
  Status Read() {
    const Dims& dims = x_.dims();
    if (dims.rank() != 3 || dims[2] % 3 != 0)
      return BadData("X " + dims.ToString() + " must be [rows, length, 3 units]");
    sizes = {dims[0], dims[1], dims[2] / 3};
    MR_TRY(mask_.Expect(sizes.rows * sizes.length));
    MR_TRY(weight_.Expect(sizes.units * sizes.units * 3));
    MR_TRY(attention_.Expect(sizes.rows * sizes.length));
    x = x_.Read();
    mask = mask_.Read();
    weight = weight_.Read();
    attention = attention_.bound() ? attention_.Read() : nullptr;
    return Status::Ok();
  }
  float AttentionAt(int64_t place) const { return attention == nullptr ? 1.0F : attention[place]; }

  Sizes sizes;
  const float* x = nullptr;
  const float* mask = nullptr;
  const float* weight = nullptr;  ///< [units, 3 units]
  const float* attention = nullptr;
  const FloatInput& x_input() const { return x_; }
  const FloatInput& weight_input() const { return weight_; }
  const FloatInput& attention_input() const { return attention_; }

 private:
  FloatInput x_;
  FloatInput mask_;
  FloatInput weight_;
  FloatInput attention_;
};

/// Adds h [units] times columns [from, from + units) of the weights to `out`.
void AddProduct(const float* h, const float* weight, int64_t units, int64_t from, float* out) {
  for (int64_t i = 0; i < units; ++i) {
    const float* row = weight + i * 3 * units + from;
    for (int64_t j = 0; j < units; ++j) out[j] += h[i] * row[j];
  }
}

/// The gates of a place: u, r and c, one behind the other. `reset` is room for units floats.
void Gates(const float* x, const float* h, const float* weight, int64_t units, float* gates, float* reset) {
  std::copy_n(x, 3 * units, gates);
  AddProduct(h, weight, units, 0, gates);
  AddProduct(h, weight, units, units, gates + units);
  for (int64_t i = 0; i < 2 * units; ++i) gates[i] = Sigmoid(gates[i]);
  for (int64_t i = 0; i < units; ++i) reset[i] = gates[units + i] * h[i];
  AddProduct(reset, weight, units, 2 * units, gates + 2 * units);
  for (int64_t i = 2 * units; i < 3 * units; ++i) gates[i] = std::tanh(gates[i]);
}

Status InferRecurrence(InferShapeContext& context) {
  for (const char* input : {"X", "Mask", "Weight", "Attention"}) {
    if (!context.HasInput(input)) continue;
    MR_ASSIGN(const VarMeta meta, context.Input(input));
    MR_TRY(ExpectDType(context, input, meta, DType::kFloat32));
  }
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta weight, context.Input("Weight"));
  if (x.dims.rank() != 3 || (x.dims[2] >= 0 && x.dims[2] % 3 != 0)) {
    return context.Error("X must be [rows, length, 3 units]; it is " + x.dims.ToString());
  }
  const int64_t units = x.dims[2] < 0 ? -1 : x.dims[2] / 3;
  if (weight.dims.rank() != 2 || !MayEqual(weight.dims[0], units) || !MayEqual(weight.dims[1], x.dims[2])) {
    return context.Error("Weight must be [units, 3 units]; it is " + weight.dims.ToString() + " for X " +
                         x.dims.ToString());
  }
  for (const char* input : {"Mask", "Attention"}) {
    if (!context.HasInput(input)) continue;
    MR_ASSIGN(const VarMeta meta, context.Input(input));
    if (meta.dims.rank() != 2 || !MayEqual(meta.dims[0], x.dims[0]) || !MayEqual(meta.dims[1], x.dims[1])) {
      return context.Error(std::string(input) + " must be [rows, length]; it is " + meta.dims.ToString() + " for X " +
                           x.dims.ToString());
    }
  }
  x.dims.set(2, units);
  context.SetOutput("Hidden", x);
  return Status::Ok();
}

class GatedRecurrenceKernel : public BoundKernel<GatedRecurrenceKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(in_.Bind(context));
    MR_ASSIGN(hidden_, context.Output("Hidden"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(in_.Read());
    const auto [rows, length, units] = in_.sizes;
    gates_.resize(static_cast<size_t>(4 * units));
    start_.assign(static_cast<size_t>(units), 0.0F);
    float* hidden = hidden_->Resize<float>({rows, length, units});
    float* const gates = gates_.data();
    for (int64_t row = 0; row < rows; ++row) {
      const float* h = start_.data();
      for (int64_t t = 0; t < length; ++t) {
        const int64_t place = row * length + t;
        float* next = hidden + place * units;
        if (in_.mask[place] == 0) {
          std::copy_n(h, units, next);
        } else {
          Gates(in_.x + place * 3 * units, h, in_.weight, units, gates, gates + 3 * units);
          const float a = in_.AttentionAt(place);
          for (int64_t i = 0; i < units; ++i) {
            const float u = gates[i] * a;
            next[i] = (1 - u) * h[i] + u * gates[2 * units + i];
          }
        }
        h = next;
      }
    }
    return Status::Ok();
  }

 private:
  Inputs in_;
  Tensor* hidden_ = nullptr;
  std::vector<float> gates_;
  std::vector<float> start_;
};

/// Back through the places of each row. Gates are computed again rather than kept.
class GatedRecurrenceGradKernel : public BoundKernel<GatedRecurrenceGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(in_.Bind(context));
    MR_ASSIGN(hidden_, GradInput::Bind(context, "Hidden"));
    MR_ASSIGN(hidden_grad_, GradInput::Bind(context, "Hidden@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(weight_grad_, context.OptionalOutput("Weight@GRAD"));
    MR_ASSIGN(attention_grad_, context.OptionalOutput("Attention@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(in_.Read());
    const auto [rows, length, units] = in_.sizes;
    MR_ASSIGN(const float* hidden, hidden_.Read(rows * length * units));
    MR_ASSIGN(const float* grad, hidden_grad_.Read(rows * length * units));
    Prepare(rows * length, units);
    for (int64_t row = 0; row < rows; ++row) {
      std::fill(to_h_.begin(), to_h_.end(), 0.0F);
      for (int64_t t = length - 1; t >= 0; --t) {
        const int64_t place = row * length + t;
        for (int64_t i = 0; i < units; ++i) to_h_[static_cast<size_t>(i)] += grad[place * units + i];
        const float* h = t == 0 ? start_.data() : hidden + (place - 1) * units;
        if (in_.mask[place] != 0) Back(place, h);
      }
    }
    if (weight_grad_ != nullptr) {
      std::copy(to_weight_.begin(), to_weight_.end(), weight_grad_->Resize<float>({units, 3 * units}));
    }
    return Status::Ok();
  }

 private:
  void Prepare(int64_t places, int64_t units) {
    const auto size = static_cast<size_t>(units);
    gates_.resize(4 * size);
    start_.assign(size, 0.0F);
    to_h_.resize(size);
    to_gates_.resize(3 * size);
    before_.resize(size);
    to_reset_.resize(size);
    to_weight_.assign(3 * size * size, 0.0F);
    to_x_ = nullptr;
    to_attention_ = nullptr;
    if (x_grad_ != nullptr) {
      to_x_ = x_grad_->Resize<float>(in_.x_input().dims());
      std::fill_n(to_x_, places * 3 * units, 0.0F);
    }
    if (attention_grad_ != nullptr) {
      to_attention_ = attention_grad_->Resize<float>(in_.attention_input().dims());
      std::fill_n(to_attention_, places, 0.0F);
    }
  }

  /// Takes the gradient of the state behind a place, to_h_, to that of the state `h` before it.
  void Back(int64_t place, const float* h) {
    const auto units = static_cast<int64_t>(to_h_.size());
    float* const gates = gates_.data();
    float* const reset = gates + 3 * units;
    Gates(in_.x + place * 3 * units, h, in_.weight, units, gates, reset);
    const float a = in_.AttentionAt(place);
    float to_a = 0;
    for (int64_t i = 0; i < units; ++i) {
      const float u = gates[i];
      const float c = gates[2 * units + i];
      const float arrives = to_h_[static_cast<size_t>(i)];
      to_a += arrives * u * (c - h[i]);
      to_gates_[static_cast<size_t>(i)] = arrives * a * (c - h[i]) * u * (1 - u);
      to_gates_[static_cast<size_t>(2 * units + i)] = arrives * u * a * (1 - c * c);
      before_[static_cast<size_t>(i)] = arrives * (1 - u * a);
    }
    std::fill(to_reset_.begin(), to_reset_.end(), 0.0F);
    AddTransposed(2 * units, to_reset_.data());
    for (int64_t i = 0; i < units; ++i) {
      const float r = gates[units + i];
      const float arrives = to_reset_[static_cast<size_t>(i)];
      to_gates_[static_cast<size_t>(units + i)] = arrives * h[i] * r * (1 - r);
      before_[static_cast<size_t>(i)] += arrives * r;
    }
    AddTransposed(0, before_.data());
    AddTransposed(units, before_.data());
    for (int64_t i = 0; i < units; ++i) {
      float* row = to_weight_.data() + i * 3 * units;
      for (int64_t j = 0; j < 2 * units; ++j) row[j] += h[i] * to_gates_[static_cast<size_t>(j)];
      for (int64_t j = 2 * units; j < 3 * units; ++j) row[j] += reset[i] * to_gates_[static_cast<size_t>(j)];
    }
    if (to_x_ != nullptr) std::copy(to_gates_.begin(), to_gates_.end(), to_x_ + place * 3 * units);
    if (to_attention_ != nullptr) to_attention_[place] = to_a;
    to_h_.swap(before_);
  }

  /// Adds the gradient of columns [from, from + units) of the products to that of their left side.
  void AddTransposed(int64_t from, float* out) const {
    const auto units = static_cast<int64_t>(to_h_.size());
    for (int64_t i = 0; i < units; ++i) {
      const float* row = in_.weight + i * 3 * units + from;
      for (int64_t j = 0; j < units; ++j) out[i] += row[j] * to_gates_[static_cast<size_t>(from + j)];
    }
  }

  Inputs in_;
  GradInput hidden_;
  GradInput hidden_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* weight_grad_ = nullptr;
  Tensor* attention_grad_ = nullptr;
  float* to_x_ = nullptr;
  float* to_attention_ = nullptr;
  std::vector<float> gates_, start_, to_h_, to_gates_, before_, to_reset_, to_weight_;
};

}  // namespace

void RegisterGatedRecurrence(OpRegistry& registry) {
  registry.Add("gated_recurrence")
      .Apart()
      .Doc(
          "A gated recurrent unit over masked sequences, h' = (1 - u a) h + u a c with the attention a of each place: "
          "without it a GRU, with it an AUGRU.")
      .Input("X", "[rows, length, 3 units]: products and bias of update gate, reset gate and candidate")
      .Input("Mask", "[rows, length]: 0 where the state stays as it is")
      .Input("Weight", "[units, 3 units], of the state")
      .OptionalInput("Attention", "[rows, length]")
      .Output("Hidden", "[rows, length, units]: the state behind each place")
      .InferShape(InferRecurrence)
      .Grad({.inputs = {"X", "Mask", "Weight", "Attention"},
             .outputs = {"Hidden"},
             .of = {"Hidden"},
             .to = {"X", "Weight", "Attention"},
             .optional = {"Attention"}})
      .Kernel<GatedRecurrenceKernel>();
  registry.AddGradient("gated_recurrence").Kernel<GatedRecurrenceGradKernel>();
}

}  // namespace millrace
