#include <algorithm>
#include <cstring>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/scalar_input.h"

namespace millrace {
namespace {

// Three operators that pick slices of X: along an axis by their numbers, or by tuples of numbers.

enum class PickKind : uint8_t { kAxis, kTuples };

/// Which slices of X an operator picks. X is [outer, along, inner]; tuples address its leading axes.
struct PickRule {
  PickKind kind = PickKind::kAxis;
  int64_t axis = 0;

  static PickRule Of(const OpView& op) {
    if (op.type().starts_with("gather_nd")) return {PickKind::kTuples, 0};
    return {PickKind::kAxis, op.Int(op.type().starts_with("index_select") ? "dim" : "axis")};
  }
  int Axis(const Dims& x) const { return static_cast<int>(axis < 0 ? axis + x.rank() : axis); }
  Dims OutDims(const Dims& x, const Dims& index) const {
    Dims out;
    if (kind == PickKind::kTuples) {
      for (int i = 0; i + 1 < index.rank(); ++i) out.push_back(index[i]);
      for (int i = static_cast<int>(index[-1]); i < x.rank(); ++i) out.push_back(x[i]);
      return out;
    }
    for (int i = 0; i < x.rank(); ++i) out.push_back(i == Axis(x) ? KnownProduct(index, 0, index.rank()) : x[i]);
    return out;
  }
};

Status InferPick(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta index, context.Input("Index"));
  if (index.dtype != DType::kInt32) MR_TRY(ExpectDType(context, "Index", index, DType::kInt64));
  const PickRule rule = PickRule::Of(context.op());
  if (rule.kind == PickKind::kTuples) {
    if (index.dims.rank() < 1 || index.dims[-1] < 1 || index.dims[-1] > x.dims.rank()) {
      return context.Error("the last axis of Index " + index.dims.ToString() + " addresses axes of X " +
                           x.dims.ToString());
    }
  } else {
    if (!context.HasInput("Axis")) MR_TRY(FrontAxis(context, rule.axis, x.dims.rank()).status());
    const bool flat = index.dims.rank() == 1 || (index.dims.rank() == 2 && MayEqual(index.dims[1], 1));
    if (!flat) return context.Error("Index " + index.dims.ToString() + " must have one axis");
  }
  VarMeta out = x;
  out.dims = rule.OutDims(x.dims, index.dims);
  if (context.HasInput("Axis")) {  // which only the batch tells
    for (int axis = 0; axis < out.dims.rank(); ++axis) out.dims.set(axis, -1);
  }
  out.lod_level = 0;
  context.SetOutput("Out", out);
  return Status::Ok();
}

/// The places in X where the picked slices begin, and how long they are.
class Picks {
 public:
  Status Find(const PickRule& rule, const Dims& x, const Tensor& index, const std::string& name) {
    begins_.clear();
    if (rule.kind == PickKind::kTuples) return FindTuples(x, index, name);
    const int axis = rule.Axis(x);
    const int64_t outer = x.Product(0, axis);
    const int64_t count = index.numel();
    const Numbers numbers = Numbers::Of(index);
    width_ = x.Product(axis + 1, x.rank());
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < count; ++i) {
        MR_ASSIGN(const int64_t at, Checked(numbers, i, x[axis], name));
        begins_.push_back((o * x[axis] + at) * width_);
      }
    }
    return Status::Ok();
  }
  const std::vector<int64_t>& begins() const { return begins_; }
  int64_t width() const { return width_; }

 private:
  /// The values of Index, of one type or the other.
  struct Numbers {
    const int32_t* narrow = nullptr;
    const int64_t* wide = nullptr;

    static Numbers Of(const Tensor& index) {
      if (index.dtype() == DType::kInt32) return {index.data<int32_t>(), nullptr};
      return {nullptr, index.data<int64_t>()};
    }
    int64_t operator[](int64_t i) const { return narrow != nullptr ? narrow[i] : wide[i]; }
  };

  static Result<int64_t> Checked(const Numbers& index, int64_t i, int64_t size, const std::string& name) {
    const int64_t at = index[i];
    const int64_t front = at < 0 ? at + size : at;
    if (front >= 0 && front < size) return front;
    return BadData("Index \"" + name + "\"[" + std::to_string(i) + "] is " + std::to_string(at) +
                   ", outside an axis of " + std::to_string(size));
  }
  Status FindTuples(const Dims& x, const Tensor& index, const std::string& name) {
    const int64_t length = index.dims().rank() == 0 ? 0 : index.dims()[-1];
    if (length < 1 || length > x.rank()) {
      return BadData("the last axis of Index " + Shown(name, index.dims()) + " addresses axes of X " + x.ToString());
    }
    const int64_t count = index.numel();
    const Numbers numbers = Numbers::Of(index);
    width_ = x.Product(static_cast<int>(length), x.rank());
    for (int64_t i = 0; i < count; i += length) {
      int64_t place = 0;
      for (int64_t j = 0; j < length; ++j) {
        MR_ASSIGN(const int64_t at, Checked(numbers, i + j, x[static_cast<int>(j)], name));
        place = place * x[static_cast<int>(j)] + at;
      }
      begins_.push_back(place * width_);
    }
    return Status::Ok();
  }

  std::vector<int64_t> begins_;
  int64_t width_ = 0;
};

/// Forward without Out@GRAD, backward with it.
class PickKernel : public BoundKernel<PickKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(index_, context.Input("Index"));
    MR_ASSIGN(out_grad_, GradInput::BindOptional(context, "Out@GRAD"));
    MR_ASSIGN(target_, context.Output(out_grad_.bound() ? "X@GRAD" : "Out"));
    rule_ = PickRule::Of(context.op());
    MR_ASSIGN(axis_, ScalarInput::Bind(context, "Axis", static_cast<double>(rule_.axis)));
    name_ = context.InputName("Index");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const double axis, axis_.Read());
    rule_.axis = ConvertValue<int64_t>(axis);
    if (rule_.axis < -x_.dims().rank() || rule_.axis >= std::max(x_.dims().rank(), 1)) {
      return BadData("there is no axis " + std::to_string(rule_.axis) + " in X " + x_.dims().ToString());
    }
    MR_TRY(picks_.Find(rule_, x_.dims(), *index_, name_));
    const int64_t width = picks_.width();
    if (!out_grad_.bound() && x_.tensor().dtype() != DType::kFloat32) {
      const auto bytes = static_cast<int64_t>(SizeOf(x_.tensor().dtype()));
      const auto* x = static_cast<const char*>(x_.tensor().raw_data());
      const Dims dims = rule_.OutDims(x_.dims(), index_->dims());
      auto* out = static_cast<char*>(target_->ResizeRaw(x_.tensor().dtype(), dims));
      for (const int64_t begin : picks_.begins()) out = std::copy_n(x + begin * bytes, width * bytes, out);
      return Status::Ok();
    }
    if (!out_grad_.bound()) {
      const float* x = x_.Read();
      float* out = target_->Resize<float>(rule_.OutDims(x_.dims(), index_->dims()));
      for (const int64_t begin : picks_.begins()) out = std::copy_n(x + begin, width, out);
      return Status::Ok();
    }
    MR_ASSIGN(const float* grad, out_grad_.Read(static_cast<int64_t>(picks_.begins().size()) * width));
    float* x_grad = ResizeLike(x_.tensor(), target_);
    std::fill_n(x_grad, x_.tensor().numel(), 0.0F);
    for (const int64_t begin : picks_.begins()) {
      for (int64_t i = 0; i < width; ++i) x_grad[begin + i] += grad[i];
      grad += width;
    }
    return Status::Ok();
  }

 private:
  FloatInput x_;
  const Tensor* index_ = nullptr;
  GradInput out_grad_;
  Tensor* target_ = nullptr;
  PickRule rule_;
  ScalarInput axis_;
  Picks picks_;
  std::string name_;
};

void RegisterPick(OpRegistry& registry, const std::string& type, const std::string& doc, const char* axis) {
  std::vector<std::string> read = {"X", "Index"};
  OpBuilder forward = registry.Add(type);
  forward.Apart()
      .Doc(doc)
      .Input("X", "any shape")
      .Input("Index", "int32 or int64; negative: from the end")
      .Output("Out", "the slices in the order of Index")
      .InferShape(InferPick)
      .Kernel<PickKernel>();
  if (type == "gather") {
    forward.OptionalInput("Axis", "[1], instead of axis");
    read.push_back("Axis");
  }
  if (axis != nullptr) forward.Attr(axis, int64_t{0}, "the axis that Index counts along");
  forward.Grad({.inputs = read});
  registry.AddGradient(type).Kernel<PickKernel>();
}

}  // namespace

void RegisterGather(OpRegistry& registry) {
  RegisterPick(registry, "gather", "Slices of X along an axis, by number.", "axis");
  RegisterPick(registry, "index_select", "Slices of X along an axis, by number.", "dim");
  RegisterPick(registry, "gather_nd", "Slices of X; the last axis of Index addresses X's first axes.", nullptr);
}

}  // namespace millrace
