#include <algorithm>

#include "core/numbers.h"
#include "ops/kernel.h"
#include "ops/shape_input.h"
#include "ops/tensor/in_pieces.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

/// The value of fill_constant: str_value when it is given, else value.
Result<double> ReadValue(const OpView& op) {
  const std::string text = op.String("str_value");
  if (text.empty()) return static_cast<double>(op.Float("value"));
  double value = 0;
  if (ParseDouble(text, &value) != FloatText::kNoNumber) return value;
  return InvalidConfig(op.type() + ": str_value is no number: \"" + text + "\"");
}

void Fill(Tensor* out, DType type, const Dims& dims, double value) {
  WithType(type, [&](auto sample) {
    using T = decltype(sample);
    std::fill_n(out->Resize<T>(dims), dims.numel(), ConvertValue<T>(value));
  });
}

Status InferFillConstant(InferShapeContext& context) {
  VarMeta out;
  MR_ASSIGN(out.dims, ReadShape(context));
  MR_ASSIGN(out.dtype, ReadDTypeAttr(context.op(), "dtype"));
  MR_TRY(ReadValue(context.op()).status());
  if (context.HasInput("ValueTensor")) {
    MR_ASSIGN(const VarMeta value, context.Input("ValueTensor"));
    MR_TRY(ExpectDType(context, "ValueTensor", value, out.dtype));
  }
  context.SetOutput("Out", out);
  return Status::Ok();
}

class FillConstantKernel : public BoundKernel<FillConstantKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(type_, ReadDTypeAttr(context.op(), "dtype"));
    MR_ASSIGN(value_, ReadValue(context.op()));
    MR_ASSIGN(shape_, ShapeInput::Bind(context));
    MR_ASSIGN(value_tensor_, context.OptionalInput("ValueTensor"));
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_ASSIGN(const Dims dims, shape_.Read());
    if (value_tensor_ == nullptr) {
      return WithType(type_, [&](auto sample) {
        using T = decltype(sample);
        T* const out = out_->Resize<T>(dims);
        const T value = ConvertValue<T>(value_);
        return InPieces(context, dims.numel(),
                        [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, value); });
      });
    }
    if (value_tensor_->empty() || value_tensor_->numel() != 1 || value_tensor_->dtype() != type_) {
      return BadData("ValueTensor holds no single " + std::string(DTypeName(type_)));
    }
    WithType(type_, [&](auto sample) {
      using T = decltype(sample);
      const T value = *value_tensor_->data<T>();
      std::fill_n(out_->Resize<T>(dims), dims.numel(), value);
    });
    return Status::Ok();
  }

 private:
  Tensor* out_ = nullptr;
  const Tensor* value_tensor_ = nullptr;
  ShapeInput shape_;
  DType type_ = DType::kFloat32;
  double value_ = 0;
};

/// fill_any_like, whose dtype -1 is X's, and fill_zeros_like.
Result<DType> TypeLike(const OpView& op, DType x) {
  if (op.type() == "fill_zeros_like" || op.Int("dtype") == -1) return x;
  return ReadDTypeAttr(op, "dtype");
}

Status InferFillLike(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(x.dtype, TypeLike(context.op(), x.dtype));
  context.SetOutput("Out", x);
  return Status::Ok();
}

class FillLikeKernel : public BoundKernel<FillLikeKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    const bool zeros = context.op().type() == "fill_zeros_like";
    value_ = zeros ? 0 : static_cast<double>(context.op().Float("value"));
    keeps_type_ = zeros || context.op().Int("dtype") == -1;
    MR_ASSIGN(type_, TypeLike(context.op(), DType::kFloat32));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_->dims();
    const std::span<const uint32_t> lod = x_->lod();
    Fill(out_, keeps_type_ ? x_->dtype() : type_, dims, value_);
    out_->set_lod(lod);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  DType type_ = DType::kFloat32;
  bool keeps_type_ = true;
  double value_ = 0;
};

/// The shape attribute with the size of Input's batch at its place.
Dims BatchDims(const OpView& op, const Dims& input) {
  const std::vector<int64_t> shape = op.Ints("shape");
  Dims dims{std::span<const int64_t>(shape)};
  dims.set(static_cast<int>(op.Int("output_dim_idx")), input[static_cast<int>(op.Int("input_dim_idx"))]);
  return dims;
}

Status InferFillBatch(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta input, context.Input("Input"));
  const std::vector<int64_t> shape = context.op().Ints("shape");
  if (shape.empty() || shape.size() > Dims::kMaxRank) return context.Error("shape is " + ShowAttr(shape));
  MR_TRY(FrontAxis(context, context.op().Int("input_dim_idx"), input.dims.rank()).status());
  MR_ASSIGN(const int at, FrontAxis(context, context.op().Int("output_dim_idx"), static_cast<int>(shape.size())));
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    if (axis != at && shape[static_cast<size_t>(axis)] < 0)
      return context.Error("a size is negative: " + ShowAttr(shape));
  }
  VarMeta out;
  MR_ASSIGN(out.dtype, ReadDTypeAttr(context.op(), "dtype"));
  MR_TRY(ReadValue(context.op()).status());
  out.dims = BatchDims(context.op(), input.dims);
  context.SetOutput("Out", out);
  return Status::Ok();
}

class FillBatchKernel : public BoundKernel<FillBatchKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(input_, context.Input("Input"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(type_, ReadDTypeAttr(context.op(), "dtype"));
    MR_ASSIGN(value_, ReadValue(context.op()));
    const std::vector<int64_t> shape = context.op().Ints("shape");
    dims_ = Dims(std::span<const int64_t>(shape));
    from_ = static_cast<int>(context.op().Int("input_dim_idx"));
    to_ = static_cast<int>(context.op().Int("output_dim_idx"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    // A sequence counts as one of the batch.
    const bool sequences = from_ == 0 && input_->has_lod();
    dims_.set(to_, sequences ? static_cast<int64_t>(input_->lod().size()) - 1 : input_->dims()[from_]);
    Fill(out_, type_, dims_, value_);
    return Status::Ok();
  }

 private:
  const Tensor* input_ = nullptr;
  Tensor* out_ = nullptr;
  DType type_ = DType::kFloat32;
  Dims dims_;
  double value_ = 0;
  int from_ = 0;
  int to_ = 0;
};

}  // namespace

void RegisterFill(OpRegistry& registry) {
  OpBuilder constant = registry.Add("fill_constant");
  AddShape(constant);
  constant.Doc("Out = one value everywhere.")
      .OptionalInput("ValueTensor", "[1], instead of value")
      .Output("Out", "of the given shape")
      .Attr("dtype", int64_t{VarType::FP32}, "a VarType number")
      .Attr("value", 0.0F, "the value")
      .Attr("str_value", std::string(), "the value as text; goes before value")
      .Attr("force_cpu", false, "as Paddle writes it; changes nothing here")
      .Attr("place_type", int64_t{-1}, "as Paddle writes it; changes nothing here")
      .InferShape(InferFillConstant)
      .Kernel<FillConstantKernel>();
  registry.Add("fill_constant_batch_size_like")
      .Doc("Out = one value everywhere; one of its sizes is that of Input's batch.")
      .Input("Input", "any shape")
      .Output("Out", "of the given shape, with one size from Input")
      .Attr("shape", std::vector<int64_t>{}, "sizes of Out")
      .Attr("input_dim_idx", int64_t{0}, "axis of Input whose size is taken")
      .Attr("output_dim_idx", int64_t{0}, "axis of Out that gets it")
      .Attr("dtype", int64_t{VarType::FP32}, "a VarType number")
      .Attr("value", 0.0F, "the value")
      .Attr("str_value", std::string(), "the value as text; goes before value")
      .Attr("force_cpu", false, "as Paddle writes it; changes nothing here")
      .InferShape(InferFillBatch)
      .Kernel<FillBatchKernel>();
  registry.Add("fill_any_like")
      .Doc("Out = one value in the shape of X.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("value", 0.0F, "the value")
      .Attr("dtype", int64_t{-1}, "a VarType number; -1: that of X")
      .InferShape(InferFillLike)
      .Kernel<FillLikeKernel>();
  registry.Add("fill_zeros_like")
      .Doc("Out = zeros in the shape of X.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .InferShape(InferFillLike)
      .Kernel<FillLikeKernel>();
}

}  // namespace millrace
