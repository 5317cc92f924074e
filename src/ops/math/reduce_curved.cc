#include <cmath>
#include <limits>

#include "ops/math/slope_grad.h"
#include "program/expansion.h"

namespace millrace {
namespace {

// Reductions that are a curved function of a sum: the slope by a value is found from it and from the result.

struct RootOfSquares {
  /// A norm of 0 has no slope; 0 is what Paddle gives.
  static float Slope(float x, float out) { return out == 0 ? 0 : x / out; }
};

struct LogOfExponentials {
  static float Slope(float x, float out) { return std::exp(x - out); }
};

Expansion::Attributes AttributesOf(const Reduction& reduction, bool keep) {
  return {{"dim", reduction.axes}, {"keep_dim", keep}, {"reduce_all", reduction.all}};
}

Status ExpandFrobeniusNorm(Expansion& e) {
  MR_TRY(ExpectFloats(e, {"X"}));
  const Reduction reduction = Reduction::Of(e.op());
  const auto squares = e.Add("square", {{"X", e.In("X")}});
  e.SetOut("Out",
           e.Add("sqrt", {{"X", e.Add("reduce_sum", {{"X", squares}}, AttributesOf(reduction, reduction.keep))}}));
  return Status::Ok();
}

/// The largest value is taken off first, so that no exponential overflows.
Status ExpandLogSumExp(Expansion& e) {
  MR_TRY(ExpectFloats(e, {"X"}));
  const Reduction reduction = Reduction::Of(e.op());
  const auto largest = e.Add("reduce_max", {{"X", e.In("X")}}, AttributesOf(reduction, true));
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto finite = e.Add("clip", {{"X", largest}}, {{"min", -kMost}, {"max", kMost}});
  const auto rest = e.Add("elementwise_sub", {{"X", e.In("X")}, {"Y", finite}});
  const auto sums = e.Add("reduce_sum", {{"X", e.Add("exp", {{"X", rest}})}}, AttributesOf(reduction, true));
  auto out = e.Add("elementwise_add", {{"X", e.Add("log", {{"X", sums}})}, {"Y", finite}});
  if (!reduction.keep) {
    const int rank = e.Meta(e.In("X")).dims.rank();
    std::vector<int64_t> dropped;
    for (int axis = 0; axis < rank; ++axis) {
      if (reduction.Drops(axis, rank)) dropped.push_back(axis);
    }
    if (static_cast<int>(dropped.size()) == rank) dropped.pop_back();  // one value has one axis
    if (!dropped.empty()) out = e.Add("squeeze", {{"X", out}}, {{"axes", dropped}});
  }
  e.SetOut("Out", out);
  return Status::Ok();
}

template <class F>
void RegisterCurved(OpRegistry& registry, const std::string& type, const std::string& doc, ExpandFn expand,
                    void (*attrs)(OpBuilder&)) {
  OpBuilder forward = registry.Add(type);
  attrs(forward);
  forward.Doc(doc)
      .Input("X", "any shape")
      .Output("Out", "without the reduced axes; [1] when none is left")
      .Grad({.inputs = {"X"}, .outputs = {"Out"}})
      .Expand(expand);
  registry.AddGradient(type).template Kernel<SlopeGradKernel<F>>();
}

}  // namespace

void RegisterReduceCurved(OpRegistry& registry) {
  RegisterCurved<RootOfSquares>(registry, "frobenius_norm", "The root of the sum of squares along axes.",
                                ExpandFrobeniusNorm, AddReductionAttrs);
  RegisterCurved<LogOfExponentials>(registry, "logsumexp", "The logarithm of the sum of exponentials along axes.",
                                    ExpandLogSumExp, [](OpBuilder& op) {
                                      op.Attr("axis", std::vector<int64_t>{0},
                                              "axes to reduce, negative from the end; none: all")
                                          .Attr("keepdim", false, "reduced axes stay, of size 1")
                                          .Attr("reduce_all", false, "reduces every axis");
                                    });
}

}  // namespace millrace
