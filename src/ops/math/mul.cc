#include "ops/kernel.h"
#include "program/expansion.h"

namespace millrace {
namespace {

Status ExpandMul(Expansion& e) {
  MR_TRY(ExpectFloats(e, {"X", "Y"}));
  const Dims x = e.Meta(e.In("X")).dims;
  const Dims y = e.Meta(e.In("Y")).dims;
  const int64_t x_split = e.op().Int("x_num_col_dims");
  const int64_t y_split = e.op().Int("y_num_col_dims");
  const std::string shapes = "X " + Shown(e.In("X"), x) + ", Y " + Shown(e.In("Y"), y);
  if (x_split < 1 || x_split >= x.rank() || y_split < 1 || y_split >= y.rank()) {
    return e.Error("x_num_col_dims " + std::to_string(x_split) + " and y_num_col_dims " + std::to_string(y_split) +
                   " do not split " + shapes);
  }
  if (!MayEqual(KnownProduct(x, static_cast<int>(x_split), x.rank()), KnownProduct(y, 0, static_cast<int>(y_split)))) {
    return e.Error("the columns of X are not the rows of Y: " + shapes);
  }
  const auto flatten = [&e](const std::string& variable, int64_t first, int64_t last) {
    if (first == last) return variable;
    return e.Add("flatten_contiguous_range", {{"X", variable}}, {{"start_axis", first}, {"stop_axis", last}});
  };
  const auto left = flatten(e.In("X"), x_split, x.rank() - 1);
  const auto right = flatten(flatten(e.In("Y"), y_split, y.rank() - 1), 0, y_split - 1);
  auto product = e.Add("matmul_v2", {{"X", left}, {"Y", right}});
  if (y.rank() - y_split > 1) {
    std::vector<int64_t> shape(static_cast<size_t>(x_split));  // a size of 0 copies that of the product
    for (int64_t axis = y_split; axis < y.rank(); ++axis) shape.push_back(y[static_cast<int>(axis)]);
    product = e.Add("reshape", {{"X", product}}, {{"shape", shape}});
  }
  e.SetOut("Out", product);
  return Status::Ok();
}

}  // namespace

void RegisterMul(OpRegistry& registry) {
  registry.Add("mul")
      .Apart()
      .Doc("Matrix product: X and Y are flattened to matrices first.")
      .Input("X", "[..., inner]")
      .Input("Y", "[inner, ...]")
      .Output("Out", "the first axes of X, then the last of Y")
      .Attr("x_num_col_dims", int64_t{1}, "axes of X that are rows")
      .Attr("y_num_col_dims", int64_t{1}, "axes of Y that are rows")
      .Grad({.inputs = {"X", "Y"}, .to = {"X", "Y"}})
      .Expand(ExpandMul);
  registry.AddGradient("mul");
}

}  // namespace millrace
