#include <algorithm>
#include <cstring>

#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/scalar_input.h"

namespace millrace {
namespace {

/// Of inputs that are set along an axis which only the batch tells, no size is known.
Status InferConcatSomewhere(InferShapeContext& context, const std::vector<VarMeta>& metas,
                            const std::vector<std::string>& names) {
  VarMeta out = metas[0];
  for (size_t i = 1; i < metas.size(); ++i) {
    MR_TRY(ExpectDType(context, "X", metas[i], out.dtype));
    out.lod_level = std::max(out.lod_level, metas[i].lod_level);
    if (metas[i].dims.rank() == out.dims.rank()) continue;
    return context.Error("inputs differ in their number of axes: " + Shown(names[0], metas[0].dims) + ", " +
                         Shown(names[i], metas[i].dims));
  }
  for (int axis = 0; axis < out.dims.rank(); ++axis) out.dims.set(axis, -1);
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferConcat(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs("X"));
  const std::vector<std::string> names = InputArguments(context.op().desc(), "X");
  VarMeta out = metas[0];
  if (context.HasInput("AxisTensor")) return InferConcatSomewhere(context, metas, names);
  MR_ASSIGN(const int axis, FrontAxis(context, context.op().Int("axis"), out.dims.rank()));
  for (size_t i = 1; i < metas.size(); ++i) {
    MR_TRY(ExpectDType(context, "X", metas[i], out.dtype));
    Dims other = metas[i].dims;
    const int64_t size = other.rank() == out.dims.rank() ? other[axis] : 0;
    if (other.rank() == out.dims.rank()) other.set(axis, out.dims[axis]);
    if (!MayEqual(other, out.dims)) {
      return context.Error("inputs differ in more than axis " + std::to_string(axis) + ": " +
                           Shown(names[0], metas[0].dims) + ", " + Shown(names[i], metas[i].dims));
    }
    const bool known = size >= 0 && out.dims[axis] >= 0;
    out.dims.set(axis, known ? out.dims[axis] + size : -1);
    out.lod_level = std::max(out.lod_level, metas[i].lod_level);
  }
  context.SetOutput("Out", out);
  return Status::Ok();
}

class ConcatKernel : public BoundKernel<ConcatKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(xs_, context.Inputs("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(axis_, AxisInput::Bind(context, "AxisTensor", "axis"));
    names_ = InputArguments(context.op().desc(), "X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    Dims dims = xs_[0]->dims();
    MR_ASSIGN(const int axis, axis_.Read(dims.rank()));
    const int64_t outer = dims.Product(0, axis);
    const int64_t inner = dims.Product(axis + 1, dims.rank());
    const auto bytes = static_cast<int64_t>(SizeOf(xs_[0]->dtype()));
    int64_t along = 0;
    std::span<const uint32_t> lod;
    for (size_t i = 0; i < xs_.size(); ++i) {
      const Dims& other = xs_[i]->dims();
      if (xs_[i]->dtype() != xs_[0]->dtype()) {
        return BadData("inputs differ in type: \"" + names_[0] + "\", \"" + names_[i] + "\"");
      }
      if (other.rank() != dims.rank() || other.Product(0, axis) != outer ||
          other.Product(axis + 1, other.rank()) != inner) {
        return BadData("inputs differ in more than axis " + std::to_string(axis) + ": " + Shown(names_[0], dims) +
                       ", " + Shown(names_[i], other));
      }
      along += other[axis];
      if (lod.empty()) lod = xs_[i]->lod();
    }
    dims.set(axis, along);
    const int64_t row = dims.Product(axis, dims.rank()) * bytes;
    auto* out = static_cast<char*>(out_->ResizeRaw(xs_[0]->dtype(), dims));
    if (axis > 0) out_->set_lod(lod);
    for (const Tensor* x : xs_) {
      const auto part = static_cast<size_t>(x->dims().Product(axis, x->dims().rank()) * bytes);
      const auto* from = static_cast<const char*>(x->raw_data());
      for (int64_t i = 0; i < outer && part > 0; ++i)
        std::memcpy(out + i * row, from + static_cast<size_t>(i) * part, part);
      out += part;
    }
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> xs_;
  std::vector<std::string> names_;
  Tensor* out_ = nullptr;
  AxisInput axis_;
};

class ConcatGradKernel : public BoundKernel<ConcatGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(xs_, context.Inputs("X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grads_, context.Outputs("X@GRAD"));
    MR_ASSIGN(axis_, AxisInput::Bind(context, "AxisTensor", "axis"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const int axis, axis_.Read(xs_[0]->dims().rank()));
    const int64_t outer = xs_[0]->dims().Product(0, axis);
    int64_t row = 0;
    for (const Tensor* x : xs_) {
      if (x->dims().rank() > axis) row += x->dims().Product(axis, x->dims().rank());
      if (x->dims().rank() <= axis || x->dims().Product(0, axis) != outer) {
        return InvalidConfig("inputs X do not lie side by side: " + xs_[0]->dims().ToString() + ", " +
                             x->dims().ToString());
      }
    }
    MR_ASSIGN(const float* from, out_grad_.Read(outer * row));
    for (size_t i = 0; i < xs_.size(); ++i) {
      const int64_t part = xs_[i]->dims().Product(axis, xs_[i]->dims().rank());
      if (x_grads_[i] != nullptr) {
        float* to = ResizeLike(*xs_[i], x_grads_[i]);
        for (int64_t r = 0; r < outer; ++r) std::copy_n(from + r * row, part, to + r * part);
      }
      from += part;
    }
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> xs_;
  std::vector<Tensor*> x_grads_;
  GradInput out_grad_;
  AxisInput axis_;
};

}  // namespace

void RegisterConcat(OpRegistry& registry) {
  registry.Add("concat")
      .Apart()
      .Doc("Sets tensors side by side along one axis.")
      .Inputs("X", "equal but for that axis")
      .OptionalInput("AxisTensor", "[1], instead of axis")
      .Output("Out", "sizes along the axis added up")
      .Attr("axis", int64_t{0}, "negative: from the end")
      .Attr("num", int64_t{0}, "of the split whose gradient this is; changes nothing")
      .Attr("sections", std::vector<int64_t>{}, "of the split whose gradient this is; changes nothing")
      .InferShape(InferConcat)
      .Grad({.inputs = {"X", "AxisTensor"}})
      .Kernel<ConcatKernel>();
  registry.AddGradient("concat").Kernel<ConcatGradKernel>();
}

}  // namespace millrace
