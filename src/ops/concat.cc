#include <algorithm>
#include <cstring>

#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferConcat(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs("X"));
  const std::vector<std::string> names = InputArguments(context.op().desc(), "X");
  VarMeta out = metas[0];
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

int Axis(int64_t axis, const Dims& dims) { return static_cast<int>(axis < 0 ? axis + dims.rank() : axis); }

class ConcatKernel : public BoundKernel<ConcatKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(xs_, context.Inputs("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    axis_ = context.op().Int("axis");
    names_ = InputArguments(context.op().desc(), "X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    Dims dims = xs_[0]->dims();
    const int axis = Axis(axis_, dims);
    const int64_t outer = dims.Product(0, axis);
    const int64_t inner = dims.Product(axis + 1, dims.rank());
    const auto bytes = static_cast<int64_t>(SizeOf(xs_[0]->dtype()));
    int64_t along = 0;
    std::span<const uint32_t> lod;
    for (size_t i = 0; i < xs_.size(); ++i) {
      const Dims& other = xs_[i]->dims();
      if (other.Product(0, axis) != outer || other.Product(axis + 1, other.rank()) != inner) {
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
  int64_t axis_ = 0;
};

class ConcatGradKernel : public BoundKernel<ConcatGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(xs_, context.Inputs("X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grads_, context.Outputs("X@GRAD"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int axis = Axis(axis_, xs_[0]->dims());
    const int64_t outer = xs_[0]->dims().Product(0, axis);
    int64_t row = 0;
    for (const Tensor* x : xs_) {
      row += x->dims().Product(axis, x->dims().rank());
      if (x->dims().Product(0, axis) != outer) {
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
  int64_t axis_ = 0;
};

}  // namespace

void RegisterConcat(OpRegistry& registry) {
  registry.Add("concat")
      .Doc("Sets tensors side by side along one axis.")
      .Inputs("X", "equal but for that axis")
      .Output("Out", "sizes along the axis added up")
      .Attr("axis", int64_t{0}, "negative: from the end")
      .Attr("num", int64_t{0}, "of the split whose gradient this is; changes nothing")
      .Attr("sections", std::vector<int64_t>{}, "of the split whose gradient this is; changes nothing")
      .InferShape(InferConcat)
      .Grad(GradFromX)
      .Kernel<ConcatKernel>();
  registry.Add("concat_grad")
      .Doc("Gradient of concat.")
      .Inputs("X", "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Outputs("X@GRAD", "gradients of X")
      .Attr("axis", int64_t{0}, "negative: from the end")
      .InferShape(InferGradients)
      .Gradient()
      .Kernel<ConcatGradKernel>();
}

}  // namespace millrace
