#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "ops/float_input.h"
#include "ops/kernel.h"

namespace millrace {

/// True for float32, int64 and int32, which operators that need not divide compute in.
inline bool IsNumber(DType type) { return type == DType::kFloat32 || type == DType::kInt64 || type == DType::kInt32; }

/// kInvalidConfig when `meta` (of input `parameter`) holds no such numbers.
inline Status ExpectNumbers(const InferShapeContext& context, std::string_view parameter, const VarMeta& meta) {
  if (IsNumber(meta.dtype)) return Status::Ok();
  const std::vector<std::string> names = InputArguments(context.op().desc(), parameter);
  return context.Error("input " + std::string(parameter) + " (\"" + (names.empty() ? "" : names[0]) +
                       "\") must be float32, int64 or int32, but is " + std::string(DTypeName(meta.dtype)));
}

/// Calls body with a value of the C++ type of `type`, one of these.
template <class Body>
auto WithNumber(DType type, const Body& body) {
  switch (type) {
    case DType::kInt64: return body(int64_t{});
    case DType::kInt32: return body(int32_t{});
    default: return body(float{});
  }
}

/// What sums and products of T are computed in: whole numbers wrap around where they overflow, as Paddle's do.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

/// The values of an input in their type; floats as FloatInput::Read gives them. Whole numbers are no parameters.
template <class T>
const T* ReadNumbers(FloatInput& input) {
  if constexpr (std::is_same_v<T, float>) {
    return input.Read();
  } else {
    return input.tensor().template data<T>();
  }
}

/// As ResizeLike, for values of type T.
template <class T>
T* ResizeLikeIn(const Tensor& like, Tensor* to) {
  const Dims dims = like.dims();
  const std::span<const uint32_t> lod = like.lod();
  T* values = to->Resize<T>(dims);
  to->set_lod(lod);
  return values;
}

}  // namespace millrace
