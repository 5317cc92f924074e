#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "program/op_registry.h"

namespace millrace {

/// The type of values that a dtype attribute (a number of VarType.Type) names; none when operators cannot hold it.
inline std::optional<DType> DTypeOfAttr(int64_t type) {
  switch (type) {
    case VarType::BOOL: return DType::kBool;
    case VarType::UINT8: return DType::kUint8;
    case VarType::INT32: return DType::kInt32;
    case VarType::INT64: return DType::kInt64;
    case VarType::FP32: return DType::kFloat32;
    case VarType::FP64: return DType::kFloat64;
    default: return std::nullopt;
  }
}

/// Calls body with a value of the C++ type of `type`; the types are those of DTypeOfAttr.
template <class Body>
auto WithType(DType type, const Body& body) {
  switch (type) {
    case DType::kBool: return body(bool{});
    case DType::kUint8: return body(uint8_t{});
    case DType::kInt32: return body(int32_t{});
    case DType::kInt64: return body(int64_t{});
    case DType::kFloat64: return body(double{});
    default: return body(float{});
  }
}

/// As static_cast, but numbers beyond an integer's range become its bounds, and NaN 0.
template <class To, class From>
To ConvertValue(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (std::isnan(value)) return 0;
    constexpr auto kLow = static_cast<double>(std::numeric_limits<To>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<To>::max());
    const auto wide = static_cast<double>(value);
    if (wide <= kLow) return std::numeric_limits<To>::min();
    if (wide >= kHigh) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

/// The type that attribute `name` asks for; kInvalidConfig when it is none of the above.
inline Result<DType> ReadDTypeAttr(const OpView& op, std::string_view name) {
  const int64_t value = op.Int(name);
  const std::optional<DType> type = DTypeOfAttr(value);
  if (type) return *type;
  return InvalidConfig(op.type() + ": attribute " + std::string(name) + " is " + std::to_string(value) +
                       ", which is none of bool (0), int32 (2), int64 (3), float (5), double (6), uint8 (20)");
}

}  // namespace millrace
