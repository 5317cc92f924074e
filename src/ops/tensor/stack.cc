#include "ops/kernel.h"
#include "program/expansion.h"

namespace millrace {
namespace {

/// `out` = the variables of `in` side by side along a new axis; "@EMPTY@" stands for zeros.
Status Join(Expansion& e, const char* in, const char* out) {
  std::vector<std::string> names = InputArguments(e.op().desc(), in);
  std::string first;
  for (const std::string& name : names) {
    if (first.empty() && name != kEmptyVar) first = name;
  }
  if (first.empty()) return e.Error("no variable is bound to " + std::string(in));
  const VarMeta& one = e.Meta(first);
  MR_ASSIGN(const int64_t axis, FrontAxis(e, e.op().Int("axis"), one.dims.rank() + 1));
  for (std::string& name : names) {
    if (name == kEmptyVar) name = e.Add("fill_zeros_like", {{"X", first}});
    const VarMeta& meta = e.Meta(name);
    if (meta.dtype != one.dtype || !MayEqual(meta.dims, one.dims)) {
      return e.Error("types or shapes differ: " + Shown(first, one.dims) + ", " + Shown(name, meta.dims));
    }
    name = e.Add("unsqueeze", {{"X", name}}, {{"axes", std::vector<int64_t>{axis}}});
  }
  e.SetOut(out, e.Add("concat", {{"X", names}}, {{"axis", axis}}));
  return Status::Ok();
}

/// The variables of `out` = the parts of `in` along an axis, without it.
Status Separate(Expansion& e, const char* in, const char* out) {
  MR_ASSIGN(const VarMeta whole, e.Input(in));
  MR_ASSIGN(const int64_t axis, FrontAxis(e, e.op().Int("axis"), whole.dims.rank()));
  const int64_t size = whole.dims[static_cast<int>(axis)];
  const auto count = static_cast<size_t>(e.OutputCount(out));
  if (!MayEqual(size, static_cast<int64_t>(count))) {
    return e.Error("axis " + std::to_string(axis) + " of " + Shown(e.In(in), whole.dims) + " has " +
                   std::to_string(size) + " parts for " + std::to_string(count) + " outputs");
  }
  const std::vector<int64_t> ones(count, 1);
  const auto parts = e.AddList("split", {{"X", e.In(in)}}, {{"axis", axis}, {"sections", ones}}, count);
  for (size_t i = 0; i < count; ++i) {
    e.SetOut(out, e.Add("squeeze", {{"X", parts[i]}}, {{"axes", std::vector<int64_t>{axis}}}), i);
  }
  return Status::Ok();
}

}  // namespace

void RegisterStack(OpRegistry& registry) {
  registry.Add("stack")
      .Apart()
      .Doc("Sets tensors of one shape beside each other along a new axis.")
      .Inputs("X", "of equal shape")
      .Output("Y", "with one more axis")
      .Attr("axis", int64_t{0}, "where the new axis stands in Y; negative: from the end")
      .Grad({.inputs = {"X"}, .of = {"Y"}, .optional = {"X"}})
      .Expand([](Expansion& e) { return Join(e, "X", "Y"); });
  registry.AddGradient("stack").InferShape(nullptr).Expand(
      [](Expansion& e) { return Separate(e, "Y@GRAD", "X@GRAD"); });
  registry.Add("unstack")
      .Apart()
      .Doc("The parts of X along one axis, without it.")
      .Input("X", "any shape")
      .Outputs("Y", "one for each place on the axis")
      .Attr("axis", int64_t{0}, "the axis that goes; negative: from the end")
      .Attr("num", int64_t{0}, "how many there are, as Paddle writes it")
      .Grad({.inputs = {"X"}, .of = {"Y"}, .unread = {"X"}})
      .Expand([](Expansion& e) { return Separate(e, "X", "Y"); });
  registry.AddGradient("unstack").InferShape(nullptr).Expand([](Expansion& e) { return Join(e, "Y@GRAD", "X@GRAD"); });
}

}  // namespace millrace
