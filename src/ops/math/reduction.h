#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ops/kernel.h"

namespace millrace {

/// Which axes of a tensor a reduction takes away.
struct Reduction {
  std::vector<int64_t> axes;
  bool keep = false;
  bool all = true;

  /// Reads dim, keep_dim and reduce_all; logsumexp calls them axis, keepdim and reduce_all.
  static Reduction Of(const OpView& op) {
    const bool has_dim = op.info().FindAttr("dim") != nullptr;
    Reduction r{op.Ints(has_dim ? "dim" : "axis"), op.Bool(has_dim ? "keep_dim" : "keepdim"), op.Bool("reduce_all")};
    r.all = r.all || r.axes.empty();
    return r;
  }
  bool Drops(int axis, int rank) const {
    return all || std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return (a < 0 ? a + rank : a) == axis; });
  }
  /// [1] when no axis is left.
  Dims OutDims(const Dims& x) const {
    Dims out;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (!Drops(axis, x.rank())) {
        out.push_back(x[axis]);
      } else if (keep) {
        out.push_back(1);
      }
    }
    if (out.rank() == 0) out.push_back(1);
    return out;
  }
};

/// Walks x in order and says for each run of values where its sum belongs.
class ReductionWalk {
 public:
  ReductionWalk(const Dims& x, const Reduction& reduction) : total_(x.numel()) {
    int64_t stride = 1;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      if (x[axis] == 1) continue;
      const bool drops = reduction.Drops(axis, x.rank());
      // Neighbours that both stay, or are both taken away, are one axis.
      if (axes_ > 0 && drops == (strides_[axes_ - 1] == 0)) {
        sizes_[axes_ - 1] *= x[axis];
      } else {
        sizes_[axes_] = x[axis];
        strides_[axes_++] = drops ? 0 : stride;
      }
      if (!drops) stride *= x[axis];
    }
  }

  /// Calls body(x_offset, count, out_offset, out_stride); the stride is 0 or 1.
  template <class Body>
  void ForEachRun(const Body& body) const {
    std::array<int64_t, Dims::kMaxRank> index{};
    int64_t out = 0;
    for (int64_t at = 0; at < total_; at += sizes_[0]) {
      body(at, sizes_[0], out, strides_[0]);
      for (size_t axis = 1; axis < axes_; ++axis) {
        out += strides_[axis];
        if (++index[axis] < sizes_[axis]) break;
        out -= strides_[axis] * sizes_[axis];
        index[axis] = 0;
      }
    }
  }

 private:
  // From the last axis forwards; one value has no axis, and is a run.
  int64_t total_ = 0;
  size_t axes_ = 0;
  std::array<int64_t, Dims::kMaxRank> sizes_{1};
  std::array<int64_t, Dims::kMaxRank> strides_{};
};

/// Adds the attributes that Reduction reads, and those that Paddle writes beside them.
inline void AddReductionAttrs(OpBuilder& op) {
  op.Attr("dim", std::vector<int64_t>{0}, "axes to reduce, negative from the end; none: all")
      .Attr("keep_dim", false, "reduced axes stay, of size 1")
      .Attr("reduce_all", false, "reduces every axis")
      .Attr("in_dtype", int64_t{-1}, "as Paddle writes it; changes nothing here")
      .Attr("out_dtype", int64_t{-1}, "type of Out, a VarType number; -1 or that of X");
}

/// Checks the axes and out_dtype, and describes Out, of X's type.
inline Status InferReduction(InferShapeContext& context, const Reduction& reduction) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  for (const int64_t axis : reduction.axes) MR_TRY(FrontAxis(context, axis, x.dims.rank()).status());
  VarMeta out = x;
  out.dims = reduction.OutDims(x.dims);
  if (reduction.Drops(0, x.dims.rank())) out.lod_level = 0;
  context.SetOutput("Out", out);
  return Status::Ok();
}

}  // namespace millrace
