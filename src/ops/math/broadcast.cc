#include "ops/math/broadcast.h"

#include <algorithm>

#include "ops/kernel.h"

namespace millrace {
namespace {

/// Sizes of `dims` within `rank` axes, beginning at `axis`, 1 elsewhere.
std::array<int64_t, Dims::kMaxRank> Spread(const Dims& dims, int axis) {
  std::array<int64_t, Dims::kMaxRank> sizes;
  sizes.fill(1);
  for (int i = 0; i < dims.rank(); ++i) sizes[static_cast<size_t>(axis + i)] = dims[i];
  return sizes;
}

Status Mismatch(const Dims& x, const Dims& y, int64_t axis) {
  return InvalidConfig("shapes do not fit: X " + x.ToString() + ", Y " + y.ToString() + ", axis " +
                       std::to_string(axis));
}

/// Y without trailing sizes of 1, as Paddle reads it when an axis is given.
Dims Trimmed(const Dims& dims) {
  int rank = dims.rank();
  while (rank > 1 && dims[rank - 1] == 1) --rank;
  return Dims(dims.sizes().subspan(0, static_cast<size_t>(rank)));
}

}  // namespace

Result<Broadcast> Broadcast::Create(const Dims& x, const Dims& y_dims, int64_t axis) {
  Dims y = y_dims;
  const bool x_is_larger = x.rank() >= y.rank();
  if (axis >= 0 && x_is_larger && x.rank() != y.rank()) y = Trimmed(y_dims);
  const int rank = std::max({x.rank(), y.rank(), 1});
  const int shorter = std::min(x.rank(), y.rank());
  const int64_t at = axis < 0 ? rank - shorter : axis;
  if (at > rank - shorter) return Mismatch(x, y_dims, axis);
  const auto x_sizes = Spread(x, x_is_larger ? 0 : static_cast<int>(at));
  const auto y_sizes = Spread(y, x_is_larger ? static_cast<int>(at) : 0);

  Broadcast walk;
  bool known = true;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    const int64_t a = x_sizes[i];
    const int64_t b = y_sizes[i];
    if (!MayEqual(a, b) && a != 1 && b != 1) return Mismatch(x, y_dims, axis);
    known = known && a >= 0 && b >= 0;
    const bool unknown = (a < 0 && b <= 1) || (b < 0 && a <= 1);
    walk.out.push_back(unknown ? -1 : (a == 1 || a < 0 ? b : a));
  }
  if (!known) return walk;

  // From the last axis forwards: strides, merging an axis into the one before it where both walk on evenly.
  int64_t x_step = 1;
  int64_t y_step = 1;
  size_t count = 0;  // axes found so far, in reverse
  std::array<int64_t, Dims::kMaxRank> sizes{};
  std::array<int64_t, Dims::kMaxRank> xs{};
  std::array<int64_t, Dims::kMaxRank> ys{};
  for (size_t i = static_cast<size_t>(rank); i-- > 0;) {
    const int64_t size = walk.out[static_cast<int>(i)];
    const int64_t x_stride = x_sizes[i] == 1 ? 0 : x_step;
    const int64_t y_stride = y_sizes[i] == 1 ? 0 : y_step;
    x_step *= x_sizes[i];
    y_step *= y_sizes[i];
    if (size == 1 && (count > 0 || i > 0)) continue;
    if (count > 0 && x_stride == xs[count - 1] * sizes[count - 1] && y_stride == ys[count - 1] * sizes[count - 1]) {
      sizes[count - 1] *= size;
      continue;
    }
    sizes[count] = size;
    xs[count] = x_stride;
    ys[count] = y_stride;
    ++count;
  }
  if (count == 0) sizes[count++] = 1;
  walk.rank = static_cast<int>(count);
  for (size_t i = 0; i < count; ++i) {
    walk.sizes[i] = sizes[count - 1 - i];
    walk.x_strides[i] = xs[count - 1 - i];
    walk.y_strides[i] = ys[count - 1 - i];
  }
  return walk;
}

}  // namespace millrace
