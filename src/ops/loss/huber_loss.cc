#include "ops/kernel.h"
#include "program/expansion.h"

namespace millrace {
namespace {

/// Out = bounded * (residual - bounded / 2), which is the square or the line.
Status ExpandHuber(Expansion& e) {
  MR_TRY(ExpectFloats(e, {"X", "Y"}));
  e.ExpectEqualShapes({"X", "Y"});
  const float delta = e.op().Float("delta");
  if (delta <= 0) return e.Error("delta must be above 0");
  const auto residual = e.Add("elementwise_sub", {{"X", e.In("Y")}, {"Y", e.In("X")}});
  const auto bounded = e.Add("clip", {{"X", residual}}, {{"min", -delta}, {"max", delta}});
  const auto half = e.Add("scale", {{"X", bounded}}, {{"scale", 0.5F}});
  const auto rest = e.Add("elementwise_sub", {{"X", residual}, {"Y", half}});
  e.SetOut("Residual", residual);
  e.SetOut("Out", e.Add("elementwise_mul", {{"X", bounded}, {"Y", rest}}));
  return Status::Ok();
}

Status ExpandHuberGrad(Expansion& e) {
  e.ExpectEqualShapes({"Residual", "Out@GRAD"});
  const float delta = e.op().Float("delta");
  const auto slope = e.Add("clip", {{"X", e.In("Residual")}}, {{"min", -delta}, {"max", delta}});
  const auto y_grad = e.Add("elementwise_mul", {{"X", slope}, {"Y", e.In("Out@GRAD")}});
  e.SetOut("Y@GRAD", y_grad);
  e.SetOut("X@GRAD", e.Add("scale", {{"X", y_grad}}, {{"scale", -1.0F}}));
  return Status::Ok();
}

}  // namespace

void RegisterHuberLoss(OpRegistry& registry) {
  registry.Add("huber_loss")
      .Doc("Half the square of Y - X near 0, a straight line beyond delta.")
      .Input("X", "any shape")
      .Input("Y", "of the same shape")
      .Output("Out", "of the same shape")
      .Output("Residual", "Y - X")
      .Attr("delta", 1.0F, "where the square ends and the straight line begins")
      .Grad({.outputs = {"Residual"}, .to = {"X", "Y"}})
      .Expand(ExpandHuber);
  registry.AddGradient("huber_loss").Expand(ExpandHuberGrad);
}

}  // namespace millrace
