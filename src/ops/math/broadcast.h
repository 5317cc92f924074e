#pragma once

#include <array>
#include <cstdint>

#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// How two tensors of different shapes meet, as Paddle's elementwise operators define it: the smaller one's axes stand
/// at `axis` of the larger one's (-1: at the end), and a size of 1 is repeated.
///
/// Neighbouring axes that both walk through without a gap are one axis here.
struct Broadcast {
  Dims out;
  int rank = 0;  ///< of the walk; at least 1
  std::array<int64_t, Dims::kMaxRank> sizes{};
  std::array<int64_t, Dims::kMaxRank> x_strides{};
  std::array<int64_t, Dims::kMaxRank> y_strides{};

  /// kInvalidConfig with both shapes when they do not fit. Sizes that are not known yet (-1) fit every size and stay -1
  /// in `out`; the walk is then not to be used.
  static Result<Broadcast> Create(const Dims& x, const Dims& y, int64_t axis);

  /// Calls body(x_offset, y_offset, out_offset, count, x_stride, y_stride) for each run along the last axis.
  template <class Body>
  void ForEachRun(const Body& body) const {
    if (out.numel() == 0) return;
    std::array<int64_t, Dims::kMaxRank> index{};
    const auto last = static_cast<size_t>(rank - 1);
    int64_t x = 0;
    int64_t y = 0;
    int64_t at = 0;
    for (;;) {
      body(x, y, at, sizes[last], x_strides[last], y_strides[last]);
      at += sizes[last];
      size_t axis = last;
      for (;;) {
        if (axis == 0) return;
        --axis;
        x += x_strides[axis];
        y += y_strides[axis];
        if (++index[axis] < sizes[axis]) break;
        x -= x_strides[axis] * sizes[axis];
        y -= y_strides[axis] * sizes[axis];
        index[axis] = 0;
      }
    }
  }
};

}  // namespace millrace
