#include <algorithm>
#include <cstring>

#include "ops/kernel.h"

namespace millrace {
namespace {

// A stack of tensors and its parts, whichever of them is made: a tensor with one more axis.

int Front(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

Dims WithAxis(const Dims& dims, int axis, int64_t size) {
  Dims out;
  for (int i = 0; i <= dims.rank(); ++i) {
    if (i == axis) out.push_back(size);
    if (i < dims.rank()) out.push_back(dims[i]);
  }
  return out;
}

Dims WithoutAxis(const Dims& dims, int axis) {
  Dims out;
  for (int i = 0; i < dims.rank(); ++i) {
    if (i != axis) out.push_back(dims[i]);
  }
  return out;
}

/// Copies `parts` [outer, inner], like `one` of them, beside each other into whole [outer, parts, inner]; null parts
/// are zeros.
void Join(const std::vector<const Tensor*>& parts, const Tensor& one, int axis, Tensor* whole) {
  const Dims dims = one.dims();
  const DType type = one.dtype();
  const auto inner = static_cast<size_t>(dims.Product(axis, dims.rank())) * SizeOf(type);
  const int64_t outer = dims.Product(0, axis);
  auto* to = static_cast<char*>(whole->ResizeRaw(type, WithAxis(dims, axis, static_cast<int64_t>(parts.size()))));
  for (int64_t i = 0; i < outer && inner > 0; ++i) {
    for (const Tensor* part : parts) {
      if (part == nullptr) {
        std::memset(to, 0, inner);
      } else {
        std::memcpy(to, static_cast<const char*>(part->raw_data()) + static_cast<size_t>(i) * inner, inner);
      }
      to += inner;
    }
  }
}

/// The reverse; null parts are left out.
void Separate(const Tensor& whole, int axis, const std::vector<Tensor*>& parts) {
  const Dims dims = WithoutAxis(whole.dims(), axis);
  const auto inner = static_cast<size_t>(dims.Product(axis, dims.rank())) * SizeOf(whole.dtype());
  const int64_t outer = dims.Product(0, axis);
  const size_t step = inner * parts.size();
  for (size_t k = 0; k < parts.size(); ++k) {
    if (parts[k] == nullptr) continue;
    auto* to = static_cast<char*>(parts[k]->ResizeRaw(whole.dtype(), dims));
    const auto* from = static_cast<const char*>(whole.raw_data());
    for (int64_t i = 0; i < outer && inner > 0; ++i) {
      std::memcpy(to + static_cast<size_t>(i) * inner, from + static_cast<size_t>(i) * step + k * inner, inner);
    }
  }
}

Status InferStack(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs("X"));
  VarMeta out = metas[0];
  if (out.dims.rank() >= Dims::kMaxRank) return context.Error("X has too many axes: " + out.dims.ToString());
  MR_ASSIGN(const int axis, FrontAxis(context, context.op().Int("axis"), out.dims.rank() + 1));
  const std::vector<std::string> names = InputArguments(context.op().desc(), "X");
  for (size_t i = 1; i < metas.size(); ++i) {
    MR_TRY(ExpectDType(context, "X", metas[i], out.dtype));
    if (!MayEqual(metas[i].dims, out.dims)) {
      return context.Error("shapes differ: " + Shown(names[0], out.dims) + ", " + Shown(names[i], metas[i].dims));
    }
  }
  out.dims = WithAxis(out.dims, axis, static_cast<int64_t>(metas.size()));
  out.lod_level = 0;
  context.SetOutput("Y", out);
  return Status::Ok();
}

Status InferUnstack(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const int axis, FrontAxis(context, context.op().Int("axis"), x.dims.rank()));
  const int count = context.OutputCount("Y");
  if (!MayEqual(x.dims[axis], count)) {
    return context.Error("axis " + std::to_string(axis) + " of X " + x.dims.ToString() + " has " +
                         std::to_string(x.dims[axis]) + " parts for " + std::to_string(count) + " outputs");
  }
  x.dims = WithoutAxis(x.dims, axis);
  x.lod_level = 0;
  for (int i = 0; i < count; ++i) context.SetOutput("Y", x, i);
  return Status::Ok();
}

class StackKernel : public BoundKernel<StackKernel> {
 public:
  Status Bind(KernelContext& context) {
    // The gradient of unstack is a stack of the gradients.
    const bool backward = context.op().info().is_gradient;
    MR_ASSIGN(xs_, context.Inputs(backward ? "Y@GRAD" : "X"));
    MR_ASSIGN(out_, context.Output(backward ? "X@GRAD" : "Y"));
    axis_ = context.op().Int("axis");
    // Parts of unstack that nothing was computed from have no gradient.
    for (const Tensor* x : xs_) one_ = one_ == nullptr ? x : one_;
    if (one_ == nullptr) return InvalidConfig(context.op().type() + ": no input is bound");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    for (const Tensor* x : xs_) {
      if (x == nullptr || (x->dtype() == one_->dtype() && x->dims() == one_->dims())) continue;
      return BadData("types or shapes differ: " + one_->dims().ToString() + ", " + x->dims().ToString());
    }
    const int axis = Front(axis_, one_->dims().rank() + 1);
    if (axis < 0 || axis > one_->dims().rank()) {
      return InvalidConfig("there is no place for axis " + std::to_string(axis_) + " in " + one_->dims().ToString());
    }
    Join(xs_, *one_, axis, out_);
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> xs_;
  const Tensor* one_ = nullptr;
  Tensor* out_ = nullptr;
  int64_t axis_ = 0;
};

class UnstackKernel : public BoundKernel<UnstackKernel> {
 public:
  Status Bind(KernelContext& context) {
    const bool backward = context.op().info().is_gradient;
    MR_ASSIGN(x_, context.Input(backward ? "Y@GRAD" : "X"));
    MR_ASSIGN(outs_, context.Outputs(backward ? "X@GRAD" : "Y"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int axis = Front(axis_, x_->dims().rank());
    if (axis < 0 || axis >= x_->dims().rank()) {
      return InvalidConfig(x_->dims().ToString() + " has no axis " + std::to_string(axis_));
    }
    if (x_->dims()[axis] != static_cast<int64_t>(outs_.size())) {
      return BadData("axis " + std::to_string(axis) + " of " + x_->dims().ToString() + " does not have " +
                     std::to_string(outs_.size()) + " parts");
    }
    Separate(*x_, axis, outs_);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  std::vector<Tensor*> outs_;
  int64_t axis_ = 0;
};

Status InferUnstackGrad(InferShapeContext& context) {
  // Paddle's program describes it; ours names X.
  if (context.HasInput("X")) return InferGradients(context);
  return KeepOutputs(context);
}

}  // namespace

void RegisterStack(OpRegistry& registry) {
  const std::string place = "where the new axis stands in Y; negative: from the end";
  const std::string axis = "the axis that goes; negative: from the end";
  registry.Add("stack")
      .Apart()
      .Doc("Sets tensors of one shape beside each other along a new axis.")
      .Inputs("X", "of equal shape")
      .Output("Y", "with one more axis")
      .Attr("axis", int64_t{0}, place)
      .InferShape(InferStack)
      .Grad({.inputs = {"X"}, .of = {"Y"}, .optional = {"X"}})
      .Kernel<StackKernel>();
  registry.AddGradient("stack").Kernel<UnstackKernel>();
  registry.Add("unstack")
      .Apart()
      .Doc("The parts of X along one axis, without it.")
      .Input("X", "any shape")
      .Outputs("Y", "one for each place on the axis")
      .Attr("axis", int64_t{0}, axis)
      .Attr("num", int64_t{0}, "how many there are, as Paddle writes it")
      .InferShape(InferUnstack)
      .Grad({.inputs = {"X"}, .of = {"Y"}, .unread = {"X"}})
      .Kernel<UnstackKernel>();
  registry.AddGradient("unstack").InferShape(InferUnstackGrad).Kernel<StackKernel>();
}

}  // namespace millrace
