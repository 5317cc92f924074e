#include <algorithm>

#include "ops/kernel.h"
#include "ops/number_types.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

Status InferWhereIndex(InferShapeContext& context) {
  MR_ASSIGN(VarMeta condition, context.Input("Condition"));
  if (condition.dtype != DType::kBool && !IsNumber(condition.dtype)) {
    return context.Error("Condition must be bool, float32, int64 or int32, but is " +
                         std::string(DTypeName(condition.dtype)));
  }
  if (condition.dims.rank() < 1) return context.Error("Condition has no axes");
  condition.dims = Dims{-1, condition.dims.rank()};
  condition.dtype = DType::kInt64;
  condition.lod_level = 0;
  context.SetOutput("Out", condition);
  return Status::Ok();
}

class WhereIndexKernel : public BoundKernel<WhereIndexKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(condition_, context.Input("Condition"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = condition_->dims();
    const int64_t count = dims.numel();
    WithType(condition_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* condition = condition_->data<T>();
      const int64_t found = std::count_if(condition, condition + count, [](T value) { return value != T{}; });
      int64_t* out = out_->Resize<int64_t>({found, dims.rank()});
      for (int64_t at = 0; at < count; ++at) {
        if (condition[at] == T{}) continue;
        int64_t rest = at;
        for (int axis = dims.rank() - 1; axis >= 0; --axis) {
          out[axis] = rest % dims[axis];
          rest /= dims[axis];
        }
        out += dims.rank();
      }
    });
    return Status::Ok();
  }

 private:
  const Tensor* condition_ = nullptr;
  Tensor* out_ = nullptr;
};

}  // namespace

void RegisterWhereIndex(OpRegistry& registry) {
  registry.Add("where_index")
      .Apart()
      .Doc("Where Condition is true, or not 0: the place of each such value, a row each.")
      .Input("Condition", "bool, float32, int64 or int32; any shape")
      .Output("Out", "int64 [found, axes of Condition]")
      .InferShape(InferWhereIndex)
      .Kernel<WhereIndexKernel>();
}

}  // namespace millrace
