#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/op_registry.h"

namespace millrace {

/// The attribute `shape` of an operator that makes a tensor; kInvalidConfig for a size below 0, for too many axes, and
/// for more values than an address can count.
inline Result<Dims> ReadShapeAttr(const InferShapeContext& context) {
  const std::vector<int64_t> shape = context.op().Ints("shape");
  if (shape.size() > Dims::kMaxRank) {
    return context.Error("shape has " + std::to_string(shape.size()) + " axes; at most " +
                         std::to_string(Dims::kMaxRank) + " are supported");
  }
  constexpr double kMostValues = 1LL << 44;
  const Dims dims{std::span<const int64_t>(shape)};
  double values = 1;
  for (const int64_t size : shape) {
    if (size < 0) return context.Error("a size is negative: " + dims.ToString());
    values *= static_cast<double>(size);
  }
  if (values > kMostValues) return context.Error("no machine holds a tensor of " + dims.ToString());
  return dims;
}

}  // namespace millrace
