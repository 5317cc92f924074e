#include <algorithm>
#include <array>

#include "ops/float_input.h"
#include "ops/kernel.h"
#include "ops/var_dtype.h"
#include "ops/x_shape.h"
#include "program/expansion.h"

namespace millrace {
namespace {

/// Where each axis of Out stands in X.
using Order = std::vector<int64_t>;

Result<Order> ReadOrder(const OpView& op, int rank) {
  Order order = op.Ints("axis");
  std::vector<bool> seen(static_cast<size_t>(rank));
  bool good = order.size() == seen.size();
  for (int64_t& axis : order) {
    if (axis < 0) axis += rank;
    good = good && axis >= 0 && axis < rank && !seen[static_cast<size_t>(axis)];
    if (good) seen[static_cast<size_t>(axis)] = true;
  }
  if (good) return order;
  return InvalidConfig("axis " + ShowAttr(op.Value("axis")) + " does not name each of " + std::to_string(rank) +
                       " axes once");
}

Dims Permuted(const Dims& x, const Order& order) {
  Dims out;
  for (const int64_t axis : order) out.push_back(x[static_cast<int>(axis)]);
  return out;
}

/// Copies x [sizes of axes] to out, whose axis i is x's axis order[i].
template <class T>
void Permute(const T* x, const Dims& dims, const Order& order, T* out) {
  const int64_t count = dims.numel();
  if (count == 0) return;
  // From Out's last axis forwards; axes that follow each other in X as well are one.
  std::array<int64_t, Dims::kMaxRank> strides{};
  std::array<int64_t, Dims::kMaxRank> sizes{};
  size_t axes = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<int>(order[i]);
    const int64_t stride = dims.Product(axis + 1, dims.rank());
    if (dims[axis] == 1) continue;
    if (axes > 0 && stride == strides[axes - 1] * sizes[axes - 1]) {
      sizes[axes - 1] *= dims[axis];
      continue;
    }
    sizes[axes] = dims[axis];
    strides[axes++] = stride;
  }
  const int64_t width = axes == 0 ? 1 : sizes[0];
  const int64_t stride = axes == 0 ? 1 : strides[0];
  const int64_t rows = axes < 2 ? 1 : sizes[1];
  const int64_t row_stride = axes < 2 ? 0 : strides[1];
  std::array<int64_t, Dims::kMaxRank> index{};
  int64_t from = 0;
  for (int64_t at = 0; at < count;) {
    for (int64_t row = 0; row < rows; ++row, at += width) {
      const T* values = x + from + row * row_stride;
      if (stride == 1) {
        std::copy_n(values, width, out + at);
      } else {
        for (int64_t i = 0; i < width; ++i) out[at + i] = values[i * stride];
      }
    }
    for (size_t a = 2; a < axes; ++a) {
      from += strides[a];
      if (++index[a] < sizes[a]) break;
      from -= strides[a] * sizes[a];
      index[a] = 0;
    }
  }
}

Status InferTranspose(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  if (x.dims.rank() >= Dims::kMaxRank) return context.Error("X has too many axes: " + x.dims.ToString());
  const auto order = ReadOrder(context.op(), x.dims.rank());
  if (!order.ok()) return context.Error(order.status().message());
  VarMeta out = x;
  out.dims = Permuted(x.dims, *order);
  out.lod_level = 0;
  context.SetOutput("Out", out);
  out.dims = XShapeOf(x.dims);
  context.SetOutput("XShape", out);
  return Status::Ok();
}

class TransposeKernel : public BoundKernel<TransposeKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(x_shape_, context.OptionalOutput("XShape"));
    MR_ASSIGN(order_, ReadOrder(context.op(), static_cast<int>(context.op().Ints("axis").size())));
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_.dims();
    if (dims.rank() != static_cast<int>(order_.size())) {
      return BadData("X " + Shown(name_, dims) + " does not have " + std::to_string(order_.size()) + " axes");
    }
    if (x_shape_ != nullptr) x_shape_->Resize<float>(XShapeOf(dims));
    const Dims out = Permuted(dims, order_);
    if (x_.tensor().dtype() == DType::kFloat32) {
      Permute(x_.Read(), dims, order_, out_->Resize<float>(out));
      return Status::Ok();
    }
    WithType(x_.tensor().dtype(), [&](auto sample) {
      using T = decltype(sample);
      Permute(x_.tensor().data<T>(), dims, order_, out_->Resize<T>(out));
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  Tensor* x_shape_ = nullptr;
  Order order_;
  std::string name_;
};

/// The same with the order turned round.
Status ExpandTransposeGrad(Expansion& e) {
  MR_ASSIGN(const Order order, ReadOrder(e.op(), static_cast<int>(e.op().Ints("axis").size())));
  Order back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  e.SetOut("X@GRAD", e.Add("transpose", {{"X", e.In("Out@GRAD")}}, {{"axis", back}}));
  return Status::Ok();
}

Status InferTransposeGrad(InferShapeContext& context) {
  if (context.HasInput("XShape")) return InferFromXShape(context);
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  context.SetOutput("X@GRAD", x);
  return Status::Ok();
}

void RegisterOrder(OpRegistry& registry, const std::string& type, bool second) {
  GradArgs reads{.optional = {second ? "XShape" : "X"}};
  (second ? reads.outputs : reads.inputs) = reads.optional;
  registry.Add(type)
      .Apart()
      .Doc("The values of X with its axes in another order.")
      .Input("X", "any shape")
      .Output("Out", "the sizes of X in that order")
      .OptionalOutput("XShape", "no values; its shape is 0, then X's")
      .Attr("axis", std::vector<int64_t>{}, "for each axis of Out, which axis of X it is")
      .Attr("data_format", std::string("AnyLayout"), "as Paddle writes it; changes nothing here")
      .InferShape(InferTranspose)
      .Grad(reads)
      .Kernel<TransposeKernel>();
  registry.AddGradient(type)
      .OptionalInput(second ? "X" : "XShape", "of the forward operator")
      .UnreadInput("Out", "of the forward operator")
      .InferShape(InferTransposeGrad)
      .Expand(ExpandTransposeGrad);
}

}  // namespace

void RegisterTranspose(OpRegistry& registry) {
  RegisterOrder(registry, "transpose", false);
  RegisterOrder(registry, "transpose2", true);
}

}  // namespace millrace
