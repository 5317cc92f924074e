#include "ops/shape_input.h"

#include <algorithm>
#include <string>

namespace millrace {
namespace {

constexpr IntListNames kShape{"ShapeTensor", "ShapeTensorList", "shape"};

/// Empty, or why there can be no tensor of these sizes.
std::string Objection(const std::vector<int64_t>& sizes) {
  if (sizes.size() > Dims::kMaxRank) {
    return "shape has " + std::to_string(sizes.size()) + " axes; at most " + std::to_string(Dims::kMaxRank) +
           " are supported";
  }
  constexpr double kMostValues = 1LL << 44;
  double values = 1;
  for (const int64_t size : sizes) {
    if (size < 0) return "a size is negative: " + Dims(sizes).ToString();
    values *= static_cast<double>(size);
  }
  return values > kMostValues ? "no machine holds a tensor of " + Dims(sizes).ToString() : "";
}

}  // namespace

Result<Dims> ReadShape(const InferShapeContext& context) {
  MR_ASSIGN(KnownInts shape, ReadKnownInts(context, kShape));
  std::vector<int64_t> least = shape.values;
  if (!shape.is_fixed) std::replace(least.begin(), least.end(), KnownInts::kUnknown, int64_t{0});
  if (const std::string objection = Objection(least); !objection.empty()) return context.Error(objection);
  if (!shape.is_fixed) std::replace(shape.values.begin(), shape.values.end(), KnownInts::kUnknown, int64_t{-1});
  return Dims(shape.values);
}

Result<Dims> ReadShapeAttr(const InferShapeContext& context) {
  const std::vector<int64_t> shape = context.op().Ints(kShape.attribute);
  if (const std::string objection = Objection(shape); !objection.empty()) return context.Error(objection);
  return Dims(shape);
}

void AddShape(OpBuilder& op) { AddIntList(op, kShape, "sizes of Out"); }

Result<ShapeInput> ShapeInput::Bind(const KernelContext& context) {
  ShapeInput input;
  MR_ASSIGN(input.sizes_, IntListInput::Bind(context, kShape));
  return input;
}

Result<Dims> ShapeInput::Read() {
  MR_TRY(sizes_.Read());
  if (const std::string objection = Objection(sizes_.values()); !objection.empty()) return BadData(objection);
  return Dims(sizes_.values());
}

}  // namespace millrace
