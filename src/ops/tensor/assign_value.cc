#include <algorithm>
#include <array>

#include "ops/kernel.h"
#include "ops/shape_input.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

/// The values of the attribute of the operator's type, as doubles: every int32 and float is one exactly.
struct AssignedValues {
  DType type = DType::kFloat32;
  std::vector<int64_t> whole;
  std::vector<float> floats;

  size_t count() const { return type == DType::kFloat32 || type == DType::kFloat64 ? floats.size() : whole.size(); }

  static Result<AssignedValues> Of(const OpView& op) {
    AssignedValues values;
    MR_ASSIGN(values.type, ReadDTypeAttr(op, "dtype"));
    switch (values.type) {
      case DType::kFloat32: values.floats = op.Floats("fp32_values"); break;
      case DType::kFloat64: values.floats = op.Floats("fp64_values"); break;
      case DType::kInt32: values.whole = op.Ints("int32_values"); break;
      case DType::kInt64: values.whole = op.Ints("int64_values"); break;
      default: values.whole = op.Ints("bool_values"); break;
    }
    return values;
  }
};

Status InferAssignValue(InferShapeContext& context) {
  VarMeta out;
  MR_ASSIGN(out.dims, ReadShapeAttr(context));
  MR_ASSIGN(const AssignedValues values, AssignedValues::Of(context.op()));
  if (static_cast<int64_t>(values.count()) != out.dims.numel()) {
    return context.Error(std::to_string(values.count()) + " values for shape " + out.dims.ToString());
  }
  out.dtype = values.type;
  context.SetOutput("Out", out);
  return Status::Ok();
}

class AssignValueKernel : public BoundKernel<AssignValueKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(values_, AssignedValues::Of(context.op()));
    dims_ = Dims(context.op().Ints("shape"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    WithType(values_.type, [&](auto sample) {
      using T = decltype(sample);
      T* out = out_->Resize<T>(dims_);
      const size_t count = values_.count();
      for (size_t i = 0; i < count; ++i) {
        out[i] = values_.whole.empty() ? ConvertValue<T>(values_.floats[i]) : ConvertValue<T>(values_.whole[i]);
      }
    });
    return Status::Ok();
  }

 private:
  Tensor* out_ = nullptr;
  AssignedValues values_;
  Dims dims_;
};

}  // namespace

void RegisterAssignValue(OpRegistry& registry) {
  const std::vector<int64_t> none;
  registry.Add("assign_value")
      .Doc("Out = the values that the program holds.")
      .Output("Out", "of the given shape")
      .Attr("shape", none, "sizes of Out")
      .Attr("dtype", int64_t{VarType::FP32}, "a VarType number; says which of the lists is read")
      .Attr("bool_values", none, "values of bool")
      .Attr("int32_values", none, "values of int32")
      .Attr("int64_values", none, "values of int64")
      .Attr("fp32_values", std::vector<float>{}, "values of float")
      .Attr("fp64_values", std::vector<float>{}, "values of double, read as floats")
      .InferShape(InferAssignValue)
      .Kernel<AssignValueKernel>();
}

}  // namespace millrace
