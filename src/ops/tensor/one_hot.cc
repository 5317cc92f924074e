#include <algorithm>

#include "ops/kernel.h"
#include "ops/scalar_input.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

/// one_hot drops the last axis of X, which is 1; one_hot_v2 keeps all.
Dims OneHotDims(const Dims& x, int64_t depth, bool second) {
  Dims out;
  for (int axis = 0; axis < (second ? x.rank() : x.rank() - 1); ++axis) out.push_back(x[axis]);
  out.push_back(depth);
  return out;
}

Status InferOneHot(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  if (x.dtype != DType::kInt32) MR_TRY(ExpectDType(context, "X", x, DType::kInt64));
  const bool second = context.op().type() == "one_hot_v2";
  if (!second && (x.dims.rank() < 1 || !MayEqual(x.dims[-1], 1))) {
    return context.Error("the last axis of X must be 1: " + x.dims.ToString());
  }
  const bool is_told = !context.HasInput("depth_tensor");
  const int64_t depth = is_told ? context.op().Int("depth") : -1;
  if (is_told && depth < 1) return context.Error("depth is " + std::to_string(depth));
  if (x.dims.rank() >= Dims::kMaxRank) return context.Error("X has too many axes: " + x.dims.ToString());
  x.dims = OneHotDims(x.dims, depth, second);
  MR_ASSIGN(x.dtype, ReadDTypeAttr(context.op(), "dtype"));
  context.SetOutput("Out", x);
  return Status::Ok();
}

class OneHotKernel : public BoundKernel<OneHotKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(type_, ReadDTypeAttr(context.op(), "dtype"));
    MR_ASSIGN(depth_input_, ScalarInput::Bind(context, "depth_tensor", static_cast<double>(context.op().Int("depth"))));
    allow_ = context.op().Bool("allow_out_of_range");
    second_ = context.op().type() == "one_hot_v2";
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_ASSIGN(const double depth, depth_input_.Read());
    depth_ = ConvertValue<int64_t>(depth);
    if (depth_ < 1) return BadData("depth is " + std::to_string(depth_));
    const int64_t count = x_->numel();
    const std::span<const uint32_t> lod = x_->lod();
    const int32_t* narrow = x_->dtype() == DType::kInt32 ? x_->data<int32_t>() : nullptr;
    const int64_t* wide = narrow == nullptr ? x_->data<int64_t>() : nullptr;
    const auto id_at = [narrow, wide](int64_t i) { return narrow != nullptr ? narrow[i] : wide[i]; };
    for (int64_t i = 0; !allow_ && i < count; ++i) {
      if (id_at(i) >= 0 && id_at(i) < depth_) continue;
      return BadData("X \"" + name_ + "\" of " + context.DescribeRow(static_cast<int>(i)) + " is " +
                     std::to_string(id_at(i)) + ", not from 0 to " + std::to_string(depth_ - 1));
    }
    WithType(type_, [&](auto sample) {
      using T = decltype(sample);
      T* out = out_->Resize<T>(OneHotDims(x_->dims(), depth_, second_));
      std::fill_n(out, count * depth_, T{});
      for (int64_t i = 0; i < count; ++i) {
        if (id_at(i) >= 0 && id_at(i) < depth_) out[i * depth_ + id_at(i)] = T{1};
      }
    });
    out_->set_lod(lod);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  DType type_ = DType::kFloat32;
  ScalarInput depth_input_;
  int64_t depth_ = 1;
  bool allow_ = false;
  bool second_ = false;
  std::string name_;
};

}  // namespace

void RegisterOneHot(OpRegistry& registry) {
  for (const std::string type : {"one_hot", "one_hot_v2"}) {
    registry.Add(type)
        .Apart()
        .Doc(type == "one_hot" ? "A row with a 1 at the id and zeros for each id of X [..., 1]."
                               : "A row with a 1 at the id and zeros for each id of X.")
        .Input("X", "int32 or int64")
        .OptionalInput("depth_tensor", "[1], instead of depth")
        .Output("Out", "[..., depth]")
        .Attr("depth", int64_t{-1}, "length of a row")
        .Attr("dtype", int64_t{VarType::FP32}, "type of Out, a VarType number")
        .Attr("allow_out_of_range", false, "other ids give zeros instead of an error")
        .InferShape(InferOneHot)
        .Kernel<OneHotKernel>();
  }
}

}  // namespace millrace
