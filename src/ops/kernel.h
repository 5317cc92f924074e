#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/op_kernel.h"

namespace millrace {

/// A kernel that is made by default and then binds its variables and attributes in `Status Bind(KernelContext&)`.
template <class K>
class BoundKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<K>();
    MR_TRY(kernel->Bind(context));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
};

/// Shape rule of operators that are checked as they run: every output stays as the program describes it.
Status KeepOutputs(InferShapeContext& context);

/// kInvalidConfig when `meta` (of input `parameter`) is not of `dtype`.
Status ExpectDType(const InferShapeContext& context, std::string_view parameter, const VarMeta& meta, DType dtype);
/// kInvalidConfig when one of these inputs is bound and is not of type float32.
Status ExpectFloats(const InferShapeContext& context, const std::vector<std::string_view>& parameters);
/// The same, and when one may not hold `count` values, as many as X asks for.
Status ExpectFloats(const InferShapeContext& context, const std::vector<std::string_view>& parameters, int64_t count);

/// Product of the sizes of axes [begin, end), or -1 when one of them is not known or it is beyond int64.
int64_t KnownProduct(const Dims& dims, int begin, int end);
/// `axis` counted from the front; kInvalidConfig when a tensor of `rank` axes has no such axis.
Result<int> FrontAxis(const InferShapeContext& context, int64_t axis, int rank);

/// Out is like X, floats; the attribute axis is one of X's.
Status InferAlongAxis(InferShapeContext& context);

/// `"name" [2, 3]`, as messages show a tensor.
std::string Shown(std::string_view name, const Dims& dims);

/// Puts dims, type and LoD of `like` on `to` and returns its values, not initialised. `to` may be `like`.
float* ResizeLike(const Tensor& like, Tensor* to);

}  // namespace millrace
