#include "ops/kernel.h"
#include "program/expansion.h"

namespace millrace {
namespace {

/// epsilon times PriorDist, one value for each class; without it, epsilon / classes.
std::string Share(Expansion& e, float epsilon) {
  if (e.HasInput("PriorDist")) {
    const auto prior = e.Add("reshape", {{"X", e.In("PriorDist")}}, {{"shape", std::vector<int64_t>{-1}}});
    return e.Add("scale", {{"X", prior}}, {{"scale", epsilon}});
  }
  const std::vector<int64_t> zero = {0};
  const std::vector<int64_t> last = {e.Meta(e.In("X")).dims.rank() - 1};
  const std::vector<int64_t> end = {last[0] + 1};
  const auto classes = e.Add("slice", {{"Input", e.Add("shape", {{"Input", e.In("X")}})}},
                             {{"axes", zero}, {"starts", last}, {"ends", end}});
  const auto count = e.Add("cast", {{"X", classes}}, {{"out_dtype", int64_t{VarType::FP32}}});
  return e.Add("scale", {{"X", e.Add("reciprocal", {{"X", count}})}}, {{"scale", epsilon}});
}

Status ExpandLabelSmooth(Expansion& e) {
  MR_TRY(ExpectFloats(e, {"X", "PriorDist"}));
  const Dims x = e.Meta(e.In("X")).dims;
  if (x.rank() == 0) return e.Error("X has no axes");
  const float epsilon = e.op().Float("epsilon");
  if (e.HasInput("PriorDist")) {
    const Dims prior = e.Meta(e.In("PriorDist")).dims;
    if (!MayEqual(KnownProduct(prior, 0, prior.rank()), x[-1])) {
      return e.Error("PriorDist " + prior.ToString() + " does not have a share for each class of X " + x.ToString());
    }
  } else if (x[-1] > 0) {
    const float even = epsilon / static_cast<float>(x[-1]);
    e.SetOut("Out", e.Add("scale", {{"X", e.In("X")}}, {{"scale", 1 - epsilon}, {"bias", even}}));
    return Status::Ok();
  }
  const auto kept = e.Add("scale", {{"X", e.In("X")}}, {{"scale", 1 - epsilon}});
  e.SetOut("Out", e.Add("elementwise_add", {{"X", kept}, {"Y", Share(e, epsilon)}}));
  return Status::Ok();
}

}  // namespace

void RegisterLabelSmooth(OpRegistry& registry) {
  registry.Add("label_smooth")
      .Doc("Out = (1 - epsilon) X + epsilon PriorDist: no class is certain.")
      .Input("X", "[..., classes]")
      .OptionalInput("PriorDist", "[1, classes]; 1 / classes without it")
      .Output("Out", "shape of X")
      .Attr("epsilon", 0.0F, "share that is taken from the label")
      .Grad(GradArgs{})
      .Expand(ExpandLabelSmooth);
  registry.AddGradient("label_smooth").Expand([](Expansion& e) {
    const float kept = 1 - e.op().Float("epsilon");
    e.SetOut("X@GRAD", e.Add("scale", {{"X", e.In("Out@GRAD")}}, {{"scale", kept}}));
    return Status::Ok();
  });
}

}  // namespace millrace
